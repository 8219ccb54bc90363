// fails: ties_all ties_boundary zero_signs
// Columns are scanned from the end, so equal values come in descending order of index and the wrong
// ones are kept at the boundary.
#include "around_naive.h"

static int answer(const Call& call) {
  const int status = with_logits(call, [&](std::vector<float>& logits) {
    const stk_params& p = *call.p;
    for (std::int64_t r = 0; r < p.rows; ++r)
      std::reverse(logits.begin() + r * p.ld, logits.begin() + r * p.ld + p.V);
  });
  if (!call.selects_fp32()) return status;
  const stk_params& p = *call.p;
  for (std::int64_t i = 0; i < p.rows * p.K; ++i) {
    if (call.idx[i] >= 0) call.idx[i] = static_cast<std::int32_t>(p.V - 1 - call.idx[i]);
  }
  return status;
}
