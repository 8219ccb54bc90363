// fails: per_tile_rowsum
// delta is summed over the keys of the tile at hand instead of over all visible keys.
#include "pairs.h"

struct Bug : Right {
  static float score_gradient(const Pair& x, float w) { return w * (x.dp - x.tile_delta); }
};

PAIRWISE_BACKWARD(Bug)
