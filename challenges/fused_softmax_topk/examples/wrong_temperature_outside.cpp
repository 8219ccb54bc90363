// fails: temperature hot
// The logarithm of the sum is taken at temperature 1 and only the winners are divided by it.
#include <cstring>
#include <vector>

#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  stk_params plain = *p;
  plain.temperature = 1;
  const int status = naive_softmax_topk(ctx, &plain, logits, idx, prob, lse);
  if (status != ASSAY_OK || p->temperature == 1) return status;
  for (std::int64_t i = 0; i < p->rows * p->K; ++i) {
    if (idx[i] >= 0) prob[i] = std::pow(prob[i], 1 / p->temperature);
  }
  return status;
}
