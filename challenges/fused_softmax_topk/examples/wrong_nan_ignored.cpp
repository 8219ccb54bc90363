// fails: nan_row_between
// Comparisons with NaN are false, so the NaN is never selected and never noticed.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

#include <vector>

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob) || p->dtype != ASSAY_F32 || p->rows * p->V == 0 || p->K == 0) {
    return naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  }
  const auto* x = static_cast<const float*>(logits);
  std::vector<float> copy(x, x + p->rows * p->ld);
  for (float& v : copy) {
    if (std::isnan(v)) v = -std::numeric_limits<float>::infinity();
  }
  return naive_softmax_topk(ctx, p, copy.data(), idx, prob, lse);
}
