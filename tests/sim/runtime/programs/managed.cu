// Managed memory: the first argument selects what goes wrong, if anything.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__managed__ int counter = 20;
__managed__ int pair[2] = {7, 0};

__global__ void add(int* p, int value) { p[threadIdx.x] += value; }
__global__ void count() {
  ++counter;
  pair[1] = pair[0] + 1;
}

#define CHECK(call)                                      \
  if (const cudaError_t e = (call); e != cudaSuccess) {  \
    std::printf("%s: %s\n", #call, cudaGetErrorName(e)); \
    return 1;                                            \
  }

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int *p = nullptr, *q = nullptr;
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaMallocManaged(&p, 4 * sizeof(int)));
  CHECK(cudaMallocManaged(&q, 4 * sizeof(int)));
  for (int i = 0; i < 4; ++i) p[i] = i;
  const cudaMemLocation device{cudaMemLocationTypeDevice, 0};
  CHECK(cudaMemPrefetchAsync(p, 4 * sizeof(int), device, 0, s));
  CHECK(cudaMemAdvise(p, 4 * sizeof(int), cudaMemAdviseSetReadMostly, device));
  add<<<1, std::strcmp(what, "beyond") == 0 ? 5 : 4, 0, s>>>(p, 10);
  if (std::strcmp(what, "early") == 0) {
    p[2] = 5;
    add<<<1, 4, 0, s>>>(q, 1);
  }
  const cudaError_t error = cudaStreamSynchronize(s);
  if (error != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorName(error));
    return 0;
  }
  std::printf("%d %d %d %d\n", p[0], p[1], p[2], p[3]);
  const int from[4] = {0, 2, 4, 6};
  CHECK(cudaMemcpy(q, from, sizeof from, cudaMemcpyHostToDevice));
  std::printf("%d %d %d %d\n", q[0], q[1], q[2], q[3]);
  count<<<1, 1, 0, s>>>();
  CHECK(cudaDeviceSynchronize());
  std::printf("%d %d\n%d\n", pair[0], pair[1], counter);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, p));
  std::printf("%d\n", attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == p);
  CHECK(cudaFree(p));
  CHECK(cudaFree(q));
}
