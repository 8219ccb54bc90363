// fails: square
// dS = dP - delta, without the factor P.
#include "pairs.h"

struct Bug : Right {
  static float score_gradient(const Pair& x, float) { return x.dp - x.delta; }
};

PAIRWISE_BACKWARD(Bug)
