// fails: offset_1e4 offset_1e6 tiny_var
// Variance as E[x^2] - E[x]^2 in fp32: nothing is left of it once the mean is 10^4 deviations away.
#include "around_naive.h"

struct Bug : Right {
  static int forward(const Forward& call) {
    const int status = call.naive();
    const ln_params& p = *call.p;
    if (status != ASSAY_OK || p.D == 0) return status;
    const auto D = static_cast<float>(p.D);
    for (std::int64_t r = 0; r < p.rows; ++r) {
      float sum = 0, square = 0;
      for (std::int64_t i = 0; i < p.D; ++i) {
        const float v = load(call.x, p.dtype, r * p.D + i);
        sum += v;
        square += v * v;
      }
      const float mean = sum / D, var = std::max(square / D - mean * mean, 0.0f);
      static_cast<Statistics*>(call.cache)[r] = {mean, 1 / std::sqrt(var + p.eps)};
    }
    return ASSAY_OK;
  }
};

LAYER_NORM(Bug)
