// fails: all_masked
// No guard for a row whose maximum is -inf: -inf minus -inf.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  for (std::int64_t i = 0; status == ASSAY_OK && i < p->rows * p->K; ++i) {
    const std::int64_t first = i / p->K * p->K;
    if (p->V > 0 && prob[first] == 0) prob[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return status;
}
