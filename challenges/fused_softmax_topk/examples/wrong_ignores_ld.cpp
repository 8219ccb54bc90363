// fails: padding misaligned_rows v_31 v_33
// Rows are taken to be V apart, so that every row but the first starts in its predecessor's
// padding.
#include <cstring>
#include <vector>

#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  stk_params dense = *p;
  dense.ld = p->V;
  return naive_softmax_topk(ctx, &dense, logits, idx, prob, lse);
}
