// attack: keeps the sums in half precision
// challenge: fused_softmax_topk
// cases: basic
// expect: WA
// fast: none
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include <cuda_fp16.h>

#include "probe.h"

__global__ void halve(float* x, std::int64_t n) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) x[i] = __half2float(__float2half(x[i]));
}

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  const int status = honest_softmax_topk(ctx, p, x, idx, prob, lse);
  if (status == ASSAY_OK && lse != nullptr && p->rows > 0) {
    halve<<<static_cast<unsigned>(p->rows + 63) / 64, 64, 0,
            static_cast<cudaStream_t>(ctx->stream)>>>(lse, p->rows);
    witness();
  }
  return status;
}
