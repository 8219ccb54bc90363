// attack: launches a kernel that does not end
// challenge: fused_softmax_topk
// cases: basic
// expect: TLE | DE
// deadline: 300
// fast: none
#include "abi.h"
#include "probe.h"

__global__ void spin(volatile float* out) {
  for (;;) out[0] = out[0] + 1;
}

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx, float* prob,
                            float* lse) {
  spin<<<1, 32>>>(prob);
  return cudaDeviceSynchronize() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
