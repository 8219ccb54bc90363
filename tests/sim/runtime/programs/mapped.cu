// Mapped memory of the host: "early" writes it while a kernel does.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__global__ void add(int* p, int value) { p[threadIdx.x] += value; }

#define CHECK(call)                                      \
  if (const cudaError_t e = (call); e != cudaSuccess) {  \
    std::printf("%s: %s\n", #call, cudaGetErrorName(e)); \
    return 1;                                            \
  }

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  if (!properties.canMapHostMemory) return 1;  // programs ask first
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));

  // Allocated as such: the device has it at the same address.
  int *p = nullptr, *same = nullptr;
  CHECK(cudaHostAlloc(&p, 4 * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&same, p, 0));
  for (int i = 0; i < 4; ++i) p[i] = i;
  add<<<1, 4, 0, s>>>(same, 1);
  if (std::strcmp(what, "early") == 0) p[2] = 50;
  CHECK(cudaStreamSynchronize(s));
  std::printf("%d %d %d %d\n", p[0], p[1], p[2], p[3]);

  // Page-locked: from the call on the device has it at an address of its own.
  int *q = nullptr, *other = nullptr;
  CHECK(cudaMallocHost(&q, 4 * sizeof(int)));
  for (int i = 0; i < 4; ++i) q[i] = i + 5;
  CHECK(cudaHostGetDevicePointer(&other, q, 0));
  add<<<1, 4, 0, s>>>(other, 1);
  CHECK(cudaDeviceSynchronize());
  std::printf("%d %d %d %d\n", q[0], q[1], q[2], q[3]);

  // The program's own. While the kernel adds to the first half, the host writes the second.
  static int own[2] = {9, 0};
  CHECK(cudaHostRegister(own, sizeof own, cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&other, own, 0));
  add<<<1, 1, 0, s>>>(other, 1);
  own[1] = 20;
  CHECK(cudaStreamSynchronize(s));
  std::printf("%d %d\n", own[0], own[1]);
  CHECK(cudaHostUnregister(own));
  CHECK(cudaFreeHost(q));
  CHECK(cudaFreeHost(p));
}
