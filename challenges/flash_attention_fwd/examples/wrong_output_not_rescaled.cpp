// fails: o_not_rescaled rising_max
// The sum of weights is rescaled when the maximum rises, the output is not.
#include "tiled.h"

struct Bug : Right {
  static float correction(Step) { return 1; }
  static float sum_correction(Step s) { return Right::correction(s); }
};

TILED_FORWARD(Bug)
