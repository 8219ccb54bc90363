// fails: biased_D3 d2 d7 basic
// Variance divided by D - 1.
#include "around_naive.cuh"

struct Unbiased {
  __device__ double operator()(const ln_params& p, double var) const {
    const auto D = static_cast<double>(p.D);
    return 1 / sqrt(var * D / (D > 1 ? D - 1 : 1) + p.eps);
  }
};

struct Bug : Right {
  static int forward(const Forward& call) { return with_rstd(call, Unbiased{}); }
};

LAYER_NORM(Bug)
