// fails: axis_rowsum square
// delta is laid out along the keys instead of the queries.
#include "pairs.h"

struct Bug : Right {
  static float score_gradient(const Pair& x, float w) { return w * (x.dp - x.delta_of_key); }
};

PAIRWISE_BACKWARD(Bug)
