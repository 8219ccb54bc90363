// fails: causal_future_poison
// Masked scores get -1e9 added: a masked NaN stays NaN, and weights of 0 multiply masked values.
#include "tiled.h"

struct Bug : Right {
  static constexpr bool kMaskedKeysTakePart = true;
};

TILED_FORWARD(Bug)
