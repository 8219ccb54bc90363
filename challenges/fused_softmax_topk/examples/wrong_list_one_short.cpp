// fails: k_eq_v k_gt_v
// The list holds at most V - 1 entries because its last place is taken by the sentinel.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  for (std::int64_t r = 0; status == ASSAY_OK && p->K >= p->V && p->V > 0 && r < p->rows; ++r) {
    idx[r * p->K + p->V - 1] = -1;
    prob[r * p->K + p->V - 1] = 0;
  }
  return status;
}
