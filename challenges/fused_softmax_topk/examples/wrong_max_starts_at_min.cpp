// fails: shift_down
// The search for the maximum starts from numeric_limits<float>::min(), which is the smallest
// positive float: a row of very negative logits never gets its maximum.
#include "sums.h"

static Sum sum(const float* x, const stk_params& p) {
  float max = std::numeric_limits<float>::min();
  for (std::int64_t j = 0; j < p.V; ++j) max = std::max(max, x[j]);
  double total = 0;
  for (std::int64_t j = 0; j < p.V; ++j) total += std::exp((x[j] - max) / p.temperature);
  return {max, static_cast<float>(total)};
}

static int answer(const Call& call) { return with_sum(call, sum); }
