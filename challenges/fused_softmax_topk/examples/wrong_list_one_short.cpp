// fails: k_eq_v k_gt_v
// The list holds at most V - 1 entries because its last place is taken by the sentinel.
#include "around_naive.h"

static int answer(const Call& call) {
  return then(call, [&](const stk_params& p) {
    for (std::int64_t r = 0; p.K >= p.V && p.V > 0 && r < p.rows; ++r) {
      call.idx[r * p.K + p.V - 1] = -1;
      call.prob[r * p.K + p.V - 1] = 0;
    }
  });
}
