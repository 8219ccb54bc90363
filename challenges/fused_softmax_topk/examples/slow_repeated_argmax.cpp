// slow: time_256x50257_k50 time_16x128256_k256
// K passes over the row, each for the best column behind the one found last. Correct, needs no
// scratch, and reads everything K times.
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

}  // namespace

static int answer(const Call& call) {
  if (!call.valid()) return ASSAY_EINVAL;
  if (call.p->dtype != ASSAY_F32) return call.naive();
  const stk_params& p = *call.p;
  stk_params best = p;
  best.K = std::min(p.K, 1);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* x = call.row(r);
    std::int32_t* idx = call.idx + r * p.K;
    float* prob = call.prob + r * p.K;
    if (const int status = call.naive_row(best, r); status != ASSAY_OK) return status;
    Found found{0, -1};
    for (std::int32_t k = 0; k < p.K; ++k) {
      if (idx[0] < 0) {  // poisoned, or no columns
        idx[k] = -1;
        prob[k] = prob[0];
        continue;
      }
      const bool used = k < p.V;
      if (used) found = next(x, p.V, found);
      const bool masked = !used || std::isinf(found.value);
      if (k == 0) continue;
      idx[k] = used ? static_cast<std::int32_t>(found.column) : -1;
      prob[k] = masked ? 0.0f : prob[0] * std::exp((found.value - x[idx[0]]) / p.temperature);
    }
  }
  return ASSAY_OK;
}
