// fails: scale_not_default scale_twice
// 1 / sqrt(D) whatever the parameters say.
#include "pairs.h"

struct Bug : Right {
  static float score_scale(const fa_params& p) { return 1 / std::sqrt(static_cast<float>(p.D)); }
  static float gradient_scale(const fa_params& p) { return score_scale(p); }
};

PAIRWISE_BACKWARD(Bug)
