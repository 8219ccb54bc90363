// fails: lse_near_50 causal_64
// lse is taken for the sum of exponentials.
#include "pairs.h"

struct Bug : Right {
  static float weight(const Pair& x) { return std::exp(x.s) / x.lse; }
};

PAIRWISE_BACKWARD(Bug)
