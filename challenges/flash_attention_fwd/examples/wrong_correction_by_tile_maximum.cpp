// fails: falling_max
// Old sums are rescaled to the maximum of the tile, although the running maximum stays.
#include "tiled.h"

struct Bug : Right {
  static float correction(Step s) { return s.old == -kInf ? 0.0f : std::exp(s.old - s.tile); }
  static float sum_correction(Step s) { return correction(s); }
};

TILED_FORWARD(Bug)
