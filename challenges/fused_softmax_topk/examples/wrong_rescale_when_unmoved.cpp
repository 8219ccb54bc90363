// fails: max_first descending
// Online softmax over blocks that rescales by exp(block maximum - maximum) also when the maximum
// stays.
#include "sums.h"

static float log_sum(const float* x, const stk_params& p) {
  const float t = p.temperature;
  float max = x[0], sum = 0;
  for (std::int64_t j = 0; j < p.V; j += 1024) {
    const std::int64_t end = std::min(j + 1024, p.V);
    const float block = *std::max_element(x + j, x + end);
    sum *= block > max ? std::exp((max - block) / t) : std::exp((block - max) / t);
    max = std::max(max, block);
    for (std::int64_t i = j; i < end; ++i) sum += std::exp((x[i] - max) / t);
  }
  return max / t + std::log(sum);
}

static int answer(const Call& call) { return with_log_sum(call, log_sum); }
