// fails: padding v_tails_50257
// The row length is taken to be ld.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  stk_params padded = *p;
  padded.V = p->ld;
  return naive_softmax_topk(ctx, &padded, logits, idx, prob, lse);
}
