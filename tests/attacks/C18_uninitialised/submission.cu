// attack: answers with shared memory that nobody wrote
// challenge: fused_softmax_topk
// cases: basic
// expect: DE | WA
// fast: none
#include <cstdint>

#include "abi.h"
#include "probe.h"

__global__ void leak(float* out) {
  __shared__ float left[64];
  out[threadIdx.x] = left[threadIdx.x];
}

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  leak<<<1, 64>>>(prob);
  witness();
  return cudaDeviceSynchronize() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
