// fails: scale_not_default scale_negative scale_zero
// 1 / sqrt(D) whatever the parameters say.
#include "tiled.h"

struct Bug : Right {
  static float score(const fa_params& p, float dot) {
    return dot / std::sqrt(static_cast<float>(p.D));
  }
};

TILED_FORWARD(Bug)
