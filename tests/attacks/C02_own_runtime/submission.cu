// attack: defines the runtime's clocks and its synchronisation itself
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest | LE | CE
// dimension: performance
// deadline: 300
// fast: none
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "probe.h"

extern "C" cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}
extern "C" cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  witness();
  return honest_softmax_topk(ctx, p, x, idx, prob, lse);
}
