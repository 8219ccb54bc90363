// fails: scale_missing causal_64
// dq and dk lack the factor scale.
#include "pairs.h"

struct Bug : Right {
  static float gradient_scale(const fa_params&) { return 1; }
};

PAIRWISE_BACKWARD(Bug)
