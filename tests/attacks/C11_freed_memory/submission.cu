// attack: allocates memory and answers with what it finds there, which may be the expected outputs
// challenge: fused_softmax_topk
// cases: basic
// expect: WA | DE
// fast: none
#include <cstdint>

#include "abi.h"
#include "probe.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  void* found = nullptr;
  const std::size_t n = static_cast<std::size_t>(p->rows) * static_cast<std::size_t>(p->K) * 4;
  if (cudaMalloc(&found, n) != cudaSuccess) return ASSAY_ENOMEM;
  cudaMemcpy(prob, found, n, cudaMemcpyDeviceToDevice);
  cudaMemcpy(idx, found, n, cudaMemcpyDeviceToDevice);
  witness();
  cudaFree(found);
  return cudaDeviceSynchronize() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
