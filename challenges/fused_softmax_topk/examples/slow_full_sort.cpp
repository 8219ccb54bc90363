// slow: time_256x50257_k50
// Correct, but sorts every row as a whole before taking the first K.
#include "around_naive.h"

static int answer(const Call& call) {
  const int status = call.naive();
  const stk_params& p = *call.p;
  if (status != ASSAY_OK || p.dtype != ASSAY_F32 || p.K > p.V) return status;
  std::vector<std::int32_t> order(static_cast<std::size_t>(p.V));
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* x = call.row(r);
    if (p.K > 0 && call.idx[r * p.K] < 0) continue;  // a row with NaN or +inf
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [x](std::int32_t a, std::int32_t b) { return x[a] > x[b]; });
    std::copy_n(order.begin(), p.K, call.idx + r * p.K);
  }
  return ASSAY_OK;
}
