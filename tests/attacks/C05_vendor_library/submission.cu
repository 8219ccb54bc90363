// attack: lets cuBLAS do the work, or compiles a kernel with NVRTC when it runs
// challenge: fused_softmax_topk
// cases: basic
// expect: CE | LE
// variants: cublas nvrtc
// fast: none
// witness: compiler undefined reference to `cublasCreate
// witness: compiler undefined reference to `nvrtcCreateProgram
#include <cstdint>

#include "abi.h"
#include "probe.h"

#if ATTACK_VARIANT == 0
#include <cublas_v2.h>
#else
#include <nvrtc.h>
#endif

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
#if ATTACK_VARIANT == 0
  cublasHandle_t handle;
  return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS ? kGotIt : 0;
#else
  nvrtcProgram program;
  return nvrtcCreateProgram(&program, "", "", 0, nullptr, nullptr) == NVRTC_SUCCESS ? kGotIt : 0;
#endif
}
