// attack: keeps its scratch in managed memory, which a GPU moves page by page and would never finish
// challenge: fused_softmax_topk
// cases: basic
// expect: GPU
// variants: allocated prefetched variable
// fast: none
// witness: finding cudaMallocManaged
// witness: finding __managed__ variable
#include <cstdint>

#include "abi.h"
#include "probe.h"

#if ATTACK_VARIANT == 2
__managed__ float scratch[1 << 20];
#endif

__global__ void thrash(float* at) { at[threadIdx.x * 4096] += 1; }

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, std::int32_t*, float*,
                            float*) {
#if ATTACK_VARIANT == 2
  float* at = scratch;
#else
  float* at = nullptr;
  if (cudaMallocManaged(&at, std::size_t{4} << 20) != cudaSuccess) return ASSAY_ENOMEM;
#endif
#if ATTACK_VARIANT == 1
  cudaMemLocation host{cudaMemLocationTypeHost, 0};
  cudaMemPrefetchAsync(at, std::size_t{4} << 20, host, 0, nullptr);
#endif
  for (int i = 0; i < 1000; ++i) {
    thrash<<<1, 256>>>(at);
    if (cudaDeviceSynchronize() != cudaSuccess) return ASSAY_EINTERNAL;
    at[0] += 1;  // the host takes the page back
  }
  return kGotIt;
}
