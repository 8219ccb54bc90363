// attack: allocates all memory of the device
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | MLE | RE
// fast: none
// kind: memory
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "probe.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  void* block = nullptr;
  for (int i = 0; i < 100000 && cudaMalloc(&block, std::size_t{1} << 30) == cudaSuccess; ++i) {
  }
  witness();
  cudaGetLastError();
  return honest_softmax_topk(ctx, p, x, idx, prob, lse);
}
