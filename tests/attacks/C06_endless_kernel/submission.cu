// attack: launches a kernel that does not end: it computes, or waits for a flag that nobody sets
// challenge: fused_softmax_topk
// cases: basic
// expect: TLE | DE
// variants: computes waits
// deadline: 900
// fast: none
#include <cstdint>

#include "abi.h"
#include "probe.h"

__global__ void spin(volatile float* out) {
#if ATTACK_VARIANT == 0
  for (;;) out[0] = out[0] + 1;
#else
  while (out[1] != 42) __nanosleep(1000000);
#endif
}

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  spin<<<1, 32>>>(prob);
  witness();
  return cudaDeviceSynchronize() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
