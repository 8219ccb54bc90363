// fails: l_not_rescaled rising_max
// The output is rescaled when the maximum rises, the sum of weights is not.
#include "tiled.h"

struct Bug : Right {
  static float sum_correction(Step) { return 1; }
};

TILED_FORWARD(Bug)
