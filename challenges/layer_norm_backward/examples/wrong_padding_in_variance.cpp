// fails: padded_row_far_from_0
// A row is padded with zeros to a power of two, and the mean is subtracted from the zeros too:
// each adds the square of the mean to the variance. As unslothai/unsloth#1867.
#include "around_naive.h"

struct Bug : Right {
  static int forward(const Forward& call) {
    const int status = call.naive();
    if (status != ASSAY_OK || call.p->D == 0) return status;
    const auto D = static_cast<double>(call.p->D);
    const auto padded = static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(call.p->D)));
    auto* s = static_cast<Statistics*>(call.cache);
    for (std::int64_t r = 0; r < call.p->rows; ++r) {
      const double mean = s[r].mean, rstd = s[r].rstd;
      const double root = 1 / (rstd * rstd) + (padded - D) / D * mean * mean;
      s[r].rstd = static_cast<float>(1 / std::sqrt(root));
    }
    return ASSAY_OK;
  }
};

LAYER_NORM(Bug)
