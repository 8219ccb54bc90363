// slow: time_256x50257_k50 time_16x128256_k256
// K passes over the row, each for the best column behind the one found last. Correct, needs no
// scratch, and reads everything K times.
#include <cstring>
#include <vector>

#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

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

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32) return naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  stk_params best = *p;
  best.K = std::min(p->K, 1);
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* x = static_cast<const float*>(logits) + r * p->ld;
    std::int32_t* row_idx = idx + r * p->K;
    float* row = prob + r * p->K;
    stk_params one = best;
    one.rows = 1;
    const int status =
        naive_softmax_topk(ctx, &one, x, row_idx, row, lse != nullptr ? lse + r : nullptr);
    if (status != ASSAY_OK) return status;
    Found found{0, -1};
    for (std::int32_t k = 0; k < p->K; ++k) {
      if (row_idx[0] < 0) {  // poisoned, or no columns
        row_idx[k] = -1;
        row[k] = row[0];
        continue;
      }
      const bool used = k < p->V;
      if (used) found = next(x, p->V, found);
      const bool masked = !used || std::isinf(found.value);
      if (k == 0) continue;
      row_idx[k] = used ? static_cast<std::int32_t>(found.column) : -1;
      row[k] = masked ? 0.0f : row[0] * std::exp((found.value - x[row_idx[0]]) / p->temperature);
    }
  }
  return ASSAY_OK;
}
