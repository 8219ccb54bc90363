// fails: ascending
// Insertion into the sorted list moves at most 32 entries, so a list that must shift as a whole is
// corrupted. Random rows rarely insert that far up; ascending ones always do.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob) || p->dtype != ASSAY_F32 || p->rows * p->V == 0 || p->K == 0) {
    return naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  }
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  const auto* x = static_cast<const float*>(logits);
  for (std::int64_t r = 0; status == ASSAY_OK && p->K <= p->V && r < p->rows; ++r) {
    const float* row = x + r * p->ld;
    std::int32_t* list = idx + r * p->K;
    for (std::int32_t k = 0; k < p->K; ++k) list[k] = k;
    std::stable_sort(list, list + p->K,
                     [row](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
    for (std::int32_t j = p->K; j < p->V; ++j) {
      if (!(row[j] > row[list[p->K - 1]])) continue;
      std::int32_t k = p->K - 1;
      for (int moved = 0; k > 0 && row[j] > row[list[k - 1]] && moved < 32; ++moved, --k)
        list[k] = list[k - 1];
      list[k] = j;
    }
  }
  return status;
}
