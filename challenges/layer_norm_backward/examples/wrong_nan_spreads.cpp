// fails: nan_row
// The row sums live in accumulators that are scaled down, not cleared, between rows.
#include <limits>

#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) {
    const int status = call.naive();
    const ln_params& p = *call.p;
    bool poisoned = false;
    for (std::int64_t r = 0; status == ASSAY_OK && call.dx != nullptr && r < p.rows; ++r) {
      poisoned = poisoned || (p.D > 0 && std::isnan(load(call.dx, p.dtype, r * p.D)));
      for (std::int64_t i = 0; poisoned && i < p.D; ++i)
        store(call.dx, p.dtype, r * p.D + i, std::numeric_limits<float>::quiet_NaN());
    }
    return status;
  }
};

LAYER_NORM(Bug)
