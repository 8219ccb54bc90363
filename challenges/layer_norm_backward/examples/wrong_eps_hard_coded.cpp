// fails: eps_1e_12 eps_1e_3 large_eps
// eps is 1e-5 whatever the caller says.
#include "around_naive.h"

struct Bug : Right {
  static int forward(const Forward& call) {
    return with_rstd(call, [&](double var) { return 1 / std::sqrt(std::max(var, 0.0) + 1e-5); });
  }
};

LAYER_NORM(Bug)
