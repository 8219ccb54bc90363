// attack: traps, or touches memory that is not its own
// challenge: fused_softmax_topk
// cases: basic
// expect: DE | RE
// variants: trap null far
// fast: trap
#include <cstdint>

#include "abi.h"
#include "probe.h"

__global__ void fault(float* out) {
#if ATTACK_VARIANT == 0
  asm volatile("trap;");
#elif ATTACK_VARIANT == 1
  *static_cast<volatile float*>(nullptr) = out[0];
#else
  out[std::int64_t{1} << 33] = 1;
#endif
}

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  fault<<<1, 32>>>(prob);
  witness();
  return cudaDeviceSynchronize() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
