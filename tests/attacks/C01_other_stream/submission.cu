// attack: works on a stream of its own and waits for nothing
// challenge: fused_softmax_topk
// cases: basic
// expect: WA | honest
// fast: none
// kind: order
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "probe.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  static cudaStream_t own = nullptr;
  if (own == nullptr && cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess)
    return ASSAY_ENOMEM;
  assay_ctx other = *ctx;
  other.stream = own;
  witness();
  return honest_softmax_topk(&other, p, x, idx, prob, lse);
}
