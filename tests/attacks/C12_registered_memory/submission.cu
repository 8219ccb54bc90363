// attack: makes memory that it shares with the harness known to the device, whose kernels or copies could
// write there when the worker is stopped
// challenge: kv_cache
// cases: prefill_chunk
// expect: WA | PV | RE | DE | GPU
// variants: mapped written copied
// deadline: 400
// fast: none
#define kvc_attend honest_kvc_attend
#include "honest.inl"
#undef kvc_attend
#include <thread>

#include "probe.h"

__global__ void count(volatile std::int64_t* at) {
  for (int i = 0; i < 1 << 20; ++i) at[0] = i;
}

extern "C" int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = honest_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  // What the batch holds is in host memory that the harness writes.
  auto* shared = const_cast<std::int64_t*>(cu);
  const auto page = reinterpret_cast<std::uintptr_t>(shared) & ~std::uintptr_t{4095};
  auto* base = reinterpret_cast<void*>(page);
#if ATTACK_VARIANT == 0
  witness();  // the call may be refused
  void* seen = nullptr;
  if (cudaHostRegister(base, 4096, cudaHostRegisterMapped) != cudaSuccess) return ASSAY_EINTERNAL;
  if (cudaHostGetDevicePointer(&seen, base, 0) != cudaSuccess) return ASSAY_EINTERNAL;
  count<<<1, 1>>>(static_cast<std::int64_t*>(seen));
  return kGotIt;
#elif ATTACK_VARIANT == 1
  if (cudaHostRegister(base, 4096, cudaHostRegisterDefault) != cudaSuccess) return ASSAY_EINTERNAL;
  count<<<1, 1>>>(shared);
  witness();
  return cudaDeviceSynchronize() == cudaSuccess ? kGotIt : status;
#else
  // The answer arrives when the call is over: the device copies, not a thread of the worker.
  std::thread([=] {
    usleep(20000);
    cudaMemcpyAsync(o, q, 4096, cudaMemcpyDeviceToDevice, nullptr);
    cudaMemcpyAsync(shared, q, 8, cudaMemcpyDeviceToHost, nullptr);
  }).detach();
  cudaMemsetAsync(o, 0, 4096, nullptr);
  witness();
  return status;
#endif
}
