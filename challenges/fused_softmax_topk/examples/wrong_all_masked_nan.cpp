// fails: all_masked
// No guard for a row whose maximum is -inf: -inf minus -inf.
#include "around_naive.h"

static int answer(const Call& call) {
  return then(call, [&](const stk_params& p) {
    for (std::int64_t i = 0; i < p.rows * p.K; ++i) {
      const std::int64_t first = i / p.K * p.K;
      if (p.V > 0 && call.prob[first] == 0) call.prob[i] = std::numeric_limits<float>::quiet_NaN();
    }
  });
}
