// fails: row_of_4098 row_of_8194 row_of_65540
// Rows of more than 4,096 columns go by blocks of 2,048, and of the two sums over a row one is that
// of its last block.
#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) {
    const int status = call.naive();
    if (status != ASSAY_OK || call.dx == nullptr || call.p->D <= 4096) return status;
    for (std::int64_t r = 0; r < call.p->rows; ++r) row(call, call.statistics()[r], r * call.p->D);
    return ASSAY_OK;
  }

 private:
  static void row(const Backward& call, Statistics s, std::int64_t first) {
    const ln_params& p = *call.p;
    const auto g = [&](std::int64_t i) {
      return static_cast<double>(load(call.dy, p.dtype, first + i)) * call.gamma[i];
    };
    const auto xhat = [&](std::int64_t i) {
      return (static_cast<double>(load(call.x, p.dtype, first + i)) - s.mean) * s.rstd;
    };
    constexpr std::int64_t kBlock = 2048;
    double sum_g = 0, sum_gx = 0;
    for (std::int64_t begin = 0; begin < p.D; begin += kBlock) {
      double of_block = 0;
      for (std::int64_t i = begin; i < std::min(p.D, begin + kBlock); ++i) {
        sum_g += g(i);
        of_block += g(i) * xhat(i);
      }
      sum_gx = of_block;
    }
    const auto D = static_cast<double>(p.D);
    for (std::int64_t i = 0; i < p.D; ++i) {
      const double dx = s.rstd * (g(i) - sum_g / D - xhat(i) * (sum_gx / D));
      store(call.dx, p.dtype, first + i, static_cast<float>(dx));
    }
  }
};

LAYER_NORM(Bug)
