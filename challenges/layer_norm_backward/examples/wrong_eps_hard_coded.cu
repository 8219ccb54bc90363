// fails: eps_1e_12 eps_1e_3 large_eps
// eps is 1e-5 whatever the caller says.
#include "around_naive.cuh"

struct Bug : Right {
  static int forward(Forward call) {
    if (call.p == nullptr || !(call.p->eps >= 0)) return call.naive();
    ln_params changed = *call.p;
    changed.eps = 1e-5f;
    call.p = &changed;
    return call.naive();
  }
};

LAYER_NORM(Bug)
