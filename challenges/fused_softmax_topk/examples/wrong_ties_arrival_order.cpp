// fails: ties_boundary ties_all zero_signs
// A selection by threshold: everything above the K-th value, then equal values in the order in
// which threads happen to reserve slots. The output is sorted afterwards, so only membership gives
// it away.
#include "selection.h"

static std::vector<std::int32_t> winners_of(const float* x, const stk_params& p) {
  const auto n = static_cast<std::size_t>(std::min<std::int64_t>(p.K, p.V));
  std::vector<float> values(x, x + p.V);
  std::nth_element(values.begin(), values.begin() + (n - 1), values.end(), std::greater<>());
  const float threshold = values[n - 1];
  std::vector<std::int32_t> winners;
  for (std::int32_t j = 0; j < p.V; ++j) {
    if (x[j] > threshold) winners.push_back(j);
  }
  for (std::int64_t warp = 31; warp >= 0; --warp) {
    for (std::int64_t j = warp; j < p.V && winners.size() < n; j += 32) {
      if (x[j] == threshold) winners.push_back(static_cast<std::int32_t>(j));
    }
  }
  std::sort(winners.begin(), winners.end(), Before{x});
  return winners;
}

static int answer(const Call& call) { return with_winners(call, winners_of); }
