// fails: k_gt_v
// Slots that no column fills hold the list's sentinel, V.
#include "around_naive.h"

static int answer(const Call& call) {
  return then(call, [&](const stk_params& p) {
    for (std::int64_t i = 0; i < p.rows * p.K; ++i) {
      if (call.idx[i] < 0 && call.prob[i] == 0) call.idx[i] = static_cast<std::int32_t>(p.V);
    }
  });
}
