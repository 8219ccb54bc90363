// slow: time_256x50257_k50 time_16x128256_k256
// K passes over the row, each for the best column behind the one found last. Correct, needs no
// scratch, and reads everything K times.
#include <algorithm>
#include <cmath>

#include "around_naive.h"

namespace {

struct Found {
  float value;
  std::int64_t column;  // -1: none yet
};

Found next(const float* x, std::int64_t V, Found last) {
  Found best{0, -1};
  for (std::int64_t j = 0; j < V; ++j) {
    const bool behind =
        last.column < 0 || x[j] < last.value || (x[j] == last.value && j > last.column);
    if (behind && (best.column < 0 || x[j] > best.value)) best = {x[j], j};
  }
  return best;
}

// The sum of exp((x - largest) / temperature); `largest` is NaN where the row holds NaN or +inf.
struct Sum {
  double largest, sum;
};

Sum sum_of(const float* x, std::int64_t V, float temperature) {
  Sum s{-HUGE_VAL, 0};
  for (std::int64_t j = 0; j < V; ++j) {
    if (std::isnan(x[j]) || x[j] == HUGE_VALF) return {std::nan(""), 0};
    s.largest = std::max(s.largest, static_cast<double>(x[j]));
  }
  if (s.largest == -HUGE_VAL) return s;
  for (std::int64_t j = 0; j < V; ++j) s.sum += std::exp((x[j] - s.largest) / temperature);
  return s;
}

}  // namespace

static int answer(const Call& call) {
  if (!call.valid()) return ASSAY_EINVAL;
  if (call.p->dtype != ASSAY_F32) return call.naive();
  const stk_params& p = *call.p;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* x = call.row(r);
    const auto [largest, sum] = sum_of(x, p.V, p.temperature);
    if (call.lse != nullptr)
      call.lse[r] = static_cast<float>(largest / p.temperature + std::log(sum));
    Found found{0, -1};
    for (std::int64_t k = 0; k < p.K; ++k) {
      const bool used = k < p.V && !std::isnan(largest);
      if (used) found = next(x, p.V, found);
      const bool masked = !used || std::isinf(found.value);
      call.idx[r * p.K + k] = used ? static_cast<std::int32_t>(found.column) : -1;
      call.prob[r * p.K + k] =
          std::isnan(largest) ? std::nanf("")
          : masked            ? 0.0f
                   : static_cast<float>(std::exp((found.value - largest) / p.temperature) / sum);
    }
  }
  return ASSAY_OK;
}
