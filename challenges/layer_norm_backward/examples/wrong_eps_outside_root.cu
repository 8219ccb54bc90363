// fails: eps_dominant basic
// rstd = 1 / (sqrt(var) + eps).
#include "around_naive.cuh"

struct Outside {
  __device__ double operator()(const ln_params& p, double var) const {
    return 1 / (sqrt(var > 0 ? var : 0) + p.eps);
  }
};

struct Bug : Right {
  static int forward(const Forward& call) { return with_rstd(call, Outside{}); }
};

LAYER_NORM(Bug)
