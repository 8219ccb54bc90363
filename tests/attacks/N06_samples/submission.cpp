// attack: answers from a part of the row: the rest will not matter much
// challenge: fused_softmax_topk
// cases: wide
// expect: WA
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "witness.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  if (p == nullptr || p->V < 4096) return honest_softmax_topk(ctx, p, x, idx, prob, lse);
  stk_params part = *p;
  part.V = p->V * 15 / 16;
  witness();
  return honest_softmax_topk(ctx, &part, x, idx, prob, lse);
}
