// fails: const_row d1 large_eps
// Divides by the standard deviation: 0/0 for a constant row.
#include "around_naive.h"

struct Bug : Right {
  static int forward(const Forward& call) {
    return with_rstd(call, [&](double var) { return 1 / std::sqrt(var > 1e-7 ? var : 0.0); });
  }
};

LAYER_NORM(Bug)
