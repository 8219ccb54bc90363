// Stream-ordered memory from a pool that the program creates.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

__global__ void count(int* p) { p[threadIdx.x] = static_cast<int>(threadIdx.x) + 1; }

#define CHECK(call)                                      \
  if (const cudaError_t e = (call); e != cudaSuccess) {  \
    std::printf("%s: %s\n", #call, cudaGetErrorName(e)); \
    return 1;                                            \
  }

int main() {
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = 1024;
  cudaMemPool_t pool = nullptr;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  const cudaMemAccessDesc access{properties.location, cudaMemAccessFlagsProtReadWrite};
  CHECK(cudaMemPoolSetAccess(pool, &access, 1));
  CHECK(cudaDeviceSetMemPool(0, pool));

  int *p = nullptr, host[3] = {};
  CHECK(cudaMallocAsync(&p, 16, s));
  count<<<1, 3, 0, s>>>(p);
  CHECK(cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, s));
  std::uint64_t before = 0, after = 0, most = 0;
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &before));
  CHECK(cudaFreeAsync(p, s));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &after));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &most));
  CHECK(cudaStreamSynchronize(s));
  std::printf("%d %d %d\n", host[0], host[1], host[2]);
  std::printf("%d %d %d\n", static_cast<int>(before), static_cast<int>(after),
              static_cast<int>(most));
  std::printf("%s\n", cudaGetErrorName(cudaMallocFromPoolAsync(&p, 2048, pool, s)));
  CHECK(cudaMemPoolDestroy(pool));
}
