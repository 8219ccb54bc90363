// fails: shift_up shift_down range_200
// exp of the logits as they are: overflows above 88, sums to 0 far below.
#include "sums.h"

static float log_sum(const float* x, const stk_params& p) {
  const float t = p.temperature;
  float sum = 0;
  for (std::int64_t j = 0; j < p.V; ++j) sum += std::exp(x[j] / t);
  return std::log(sum);
}

static int answer(const Call& call) { return with_log_sum(call, log_sum); }
