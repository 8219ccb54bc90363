// attack: a kernel overwrites the input
// challenge: fused_softmax_topk
// cases: basic
// expect: WA | PV | RE | DE
// fast: none
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "probe.h"

__global__ void clear(float* x) { x[threadIdx.x] = 0; }

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  const int status = honest_softmax_topk(ctx, p, x, idx, prob, lse);
  clear<<<1, 32>>>(static_cast<float*>(const_cast<void*>(x)));
  witness();
  return status;
}
