// fails: rising_max causal_64
// The correction the wrong way round, e^(new - old): old sums grow where they should shrink.
#include "tiled.h"

struct Bug : Right {
  static float correction(Step s) { return s.old == -kInf ? 0.0f : std::exp(s.now - s.old); }
  static float sum_correction(Step s) { return correction(s); }
};

TILED_FORWARD(Bug)
