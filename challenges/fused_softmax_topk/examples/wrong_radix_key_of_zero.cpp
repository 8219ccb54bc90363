// fails: zero_signs
// A radix key made of the bits orders -0 below +0; here by replacing it with the smallest negative.
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
  std::vector<float> keys(x, x + p->rows * p->ld);
  for (float& k : keys) {
    if (k == 0 && std::signbit(k)) k = -std::numeric_limits<float>::denorm_min();
  }
  return naive_softmax_topk(ctx, p, keys.data(), idx, prob, lse);
}
