// fails: max_last ascending basic
// Online softmax that multiplies the running sum by exp(new - old) when the maximum rises.
#include "sums.h"

static float log_sum(const float* x, const stk_params& p) {
  const float t = p.temperature;
  float max = x[0], sum = 0;
  for (std::int64_t j = 0; j < p.V; ++j) {
    if (x[j] > max) {
      sum *= std::exp(std::min((x[j] - max) / t, 80.0f));
      max = x[j];
    }
    sum += std::exp((x[j] - max) / t);
  }
  return max / t + std::log(sum);
}

static int answer(const Call& call) { return with_log_sum(call, log_sum); }
