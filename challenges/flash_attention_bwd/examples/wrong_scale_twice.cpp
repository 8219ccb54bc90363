// fails: scale_twice causal_64
// q is scaled beforehand, and the scores and gradients again.
#include "pairs.h"

struct Bug : Right {
  static float gradient_scale(const fa_params& p) { return p.scale * p.scale; }
};

PAIRWISE_BACKWARD(Bug)
