// attack: takes its scratch from managed memory, of which host and device each hold bytes, where its twin
// takes it from the device's: whichever account sees neither would give it the points for memory
// challenge: fused_softmax_topk
// cases: scratch
// expect: honest
// variants: allocated prefetched variable
// dimension: resources
// twin: self
// fast: none
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "witness.h"

constexpr std::size_t kFloats = std::size_t{16} << 20;

#if ATTACK_VARIANT == 2 && !ATTACK_IS_TWIN
__managed__ float scratch[kFloats];
#endif

__global__ void fill(float* at) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < kFloats; i += step)
    at[i] = 1;
}

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
#if ATTACK_IS_TWIN
  float* at = nullptr;
  if (cudaMalloc(&at, kFloats * sizeof(float)) != cudaSuccess) return ASSAY_ENOMEM;
#elif ATTACK_VARIANT == 2
  float* at = scratch;
#else
  float* at = nullptr;
  if (cudaMallocManaged(&at, kFloats * sizeof(float)) != cudaSuccess) return ASSAY_ENOMEM;
#endif
#if ATTACK_VARIANT == 1 && !ATTACK_IS_TWIN
  const cudaMemLocation host{cudaMemLocationTypeHost, 0};
  if (cudaMemPrefetchAsync(at, kFloats * sizeof(float), host, 0, nullptr) != cudaSuccess)
    return ASSAY_EINTERNAL;
#endif
  fill<<<64, 256>>>(at);
  if (cudaDeviceSynchronize() != cudaSuccess) return ASSAY_EINTERNAL;
#if !ATTACK_IS_TWIN
  if (at[kFloats - 1] == 1) witness();  // the host reads what the device wrote
#endif
  const int status = honest_softmax_topk(ctx, p, x, idx, prob, lse);
#if ATTACK_IS_TWIN || ATTACK_VARIANT != 2
  cudaFree(at);
#endif
  return status;
}
