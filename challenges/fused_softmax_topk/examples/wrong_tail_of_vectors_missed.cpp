// fails: max_last v_127 v_1023
// Groups of four columns, and no loop for the last one to three.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  stk_params vectors = *p;
  vectors.V = p->V / 4 * 4;
  return naive_softmax_topk(ctx, &vectors, logits, idx, prob, lse);
}
