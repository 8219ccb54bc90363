// fails: renormalised basic wide
// Probabilities over the K winners instead of over the row.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  for (std::int64_t r = 0; status == ASSAY_OK && r < p->rows; ++r) {
    float sum = 0;
    for (std::int64_t i = r * p->K; i < (r + 1) * p->K; ++i) sum += prob[i];
    for (std::int64_t i = r * p->K; i < (r + 1) * p->K; ++i) prob[i] /= sum > 0 ? sum : 1;
  }
  return status;
}
