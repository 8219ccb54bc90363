// fails: rows_8 rows_9 rows_33
// A warp per row, but the merge across warps runs over the whole block: rows of a block of 8 get
// the first row's list.
#include "around_naive.h"

static int answer(const Call& call) {
  return then(call, [&](const stk_params& p) {
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const std::int64_t first = r / 8 * 8;
      std::copy_n(call.idx + first * p.K, p.K, call.idx + r * p.K);
      std::copy_n(call.prob + first * p.K, p.K, call.prob + r * p.K);
    }
  });
}
