// slow: time_256x50257_k50
// Correct, but sorts every row as a whole before taking the first K.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

#include <vector>

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  if (status != ASSAY_OK || p->dtype != ASSAY_F32 || p->K > p->V) return status;
  std::vector<std::int32_t> order(static_cast<std::size_t>(p->V));
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* x = static_cast<const float*>(logits) + r * p->ld;
    if (p->K > 0 && idx[r * p->K] < 0) continue;  // a row with NaN or +inf
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [x](std::int32_t a, std::int32_t b) { return x[a] > x[b]; });
    std::copy_n(order.begin(), p->K, idx + r * p->K);
  }
  return status;
}
