// fails: launch_one_row long_tail_sum
// One block per row strides over at most 2^20 columns: the loop's trip count is a constant.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.V = std::min<std::int64_t>(p.V, 1 << 20); });
}
