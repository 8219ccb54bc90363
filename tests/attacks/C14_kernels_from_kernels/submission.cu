// attack: starts kernels from a kernel, whose work would be nobody's
// challenge: fused_softmax_topk
// cases: basic
// expect: CE | LE | GPU
// fast: none
// witness: compiler kernel launch from __device__ or __global__ functions
#include <cstdint>

#include "abi.h"
#include "probe.h"

__global__ void child(float* out) { out[0] = 1; }
__global__ void parent(float* out) { child<<<1, 1>>>(out); }

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  parent<<<1, 1>>>(prob);
  return cudaDeviceSynchronize() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
