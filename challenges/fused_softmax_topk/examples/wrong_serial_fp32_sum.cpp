// fails: long_tail_sum
// One fp32 accumulator for the whole row: beyond 2^24 equal terms it stops growing, and loses
// digits long before.
#include "sums.h"

static float log_sum(const float* x, const stk_params& p) {
  const float t = p.temperature;
  const float max = *std::max_element(x, x + p.V);
  float sum = 0;
  for (std::int64_t j = 0; j < p.V; ++j) sum += 0.7f * std::exp((x[j] - max) / t);
  return max / t + std::log(sum / 0.7f);
}

static int answer(const Call& call) { return with_log_sum(call, log_sum); }
