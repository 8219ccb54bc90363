// fails: dv_identity lse_near_50
// Weights are 2^(s - lse): rows do not sum to 1.
#include "pairs.h"

struct Bug : Right {
  static float weight(const Pair& x) { return std::exp2(x.s - x.lse); }
};

PAIRWISE_BACKWARD(Bug)
