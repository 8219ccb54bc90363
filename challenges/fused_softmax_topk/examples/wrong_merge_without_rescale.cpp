// fails: max_first max_last basic
// 256 partial sums, each relative to its own maximum, are added up as if they were relative to the
// row's.
#include "sums.h"

static Sum sum(const float* x, const stk_params& p) {
  constexpr std::int64_t kThreads = 256;
  float max = x[0];
  double total = 0;
  for (std::int64_t t = 0; t < std::min(kThreads, p.V); ++t) {
    float local = x[t];
    for (std::int64_t j = t; j < p.V; j += kThreads) local = std::max(local, x[j]);
    for (std::int64_t j = t; j < p.V; j += kThreads)
      total += std::exp((x[j] - local) / p.temperature);
    max = std::max(max, local);
  }
  return {max, static_cast<float>(total)};
}

static int answer(const Call& call) { return with_sum(call, sum); }
