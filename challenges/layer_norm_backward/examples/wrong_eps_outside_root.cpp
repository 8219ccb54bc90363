// fails: eps_dominant basic
// rstd = 1 / (sqrt(var) + eps).
#include "around_naive.h"

struct Bug : Right {
  static int forward(const Forward& call) {
    return with_rstd(call,
                     [&](double var) { return 1 / (std::sqrt(std::max(var, 0.0)) + call.p->eps); });
  }
};

LAYER_NORM(Bug)
