// attack: resets the device in the middle of a call
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | GPU | LE | CE | RE | WA | DE
// fast: none
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "probe.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  const int status = honest_softmax_topk(ctx, p, x, idx, prob, lse);
  cudaDeviceReset();
  witness();
  return status;
}
