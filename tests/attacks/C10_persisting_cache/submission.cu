// attack: keeps its input in a part of the cache that it reserved
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest | GPU | LE | CE
// dimension: performance
// deadline: 300
// fast: none
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "probe.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, std::size_t{32} << 20);
  witness();
  cudaGetLastError();
  return honest_softmax_topk(ctx, p, x, idx, prob, lse);
}
