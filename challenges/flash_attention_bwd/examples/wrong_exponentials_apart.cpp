// fails: lse_near_minus_1000 args_positive
// e^s / e^lse: both underflow, or overflow.
#include "pairs.h"

struct Bug : Right {
  static float weight(const Pair& x) { return std::exp(x.s) / std::exp(x.lse); }
};

PAIRWISE_BACKWARD(Bug)
