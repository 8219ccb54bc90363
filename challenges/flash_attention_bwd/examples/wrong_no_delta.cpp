// fails: dq_zero_constV sum_dk_zero causal_64
// dS = P dP: delta is left out.
#include "pairs.h"

struct Bug : Right {
  static float score_gradient(const Pair& x, float w) { return w * x.dp; }
};

PAIRWISE_BACKWARD(Bug)
