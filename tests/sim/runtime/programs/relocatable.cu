// Device code in two files, compiled with -rdc=true: relocatable_part.cu has the rest.
#include <cuda_runtime.h>

#include <cstdio>

extern __device__ float scaled(float);
extern __device__ int calls;
extern __constant__ float factor;
static __device__ int offset = 3;
__device__ float (*table[1])(float) = {scaled};

__global__ void apply(float* out) {
  const auto t = static_cast<float>(threadIdx.x);
  out[threadIdx.x] = scaled(t) + table[0](t) + static_cast<float>(offset);
  atomicAdd(&calls, 1);
}

int set_factor(float value);
int count_calls();

int main() {
  constexpr int kThreads = 32;
  float *device = nullptr, host[kThreads];
  cudaMalloc(&device, sizeof host);
  if (set_factor(5) != 0) return 1;
  apply<<<1, kThreads>>>(device);
  if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  int wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    wrong += host[t] != static_cast<float>(2 * 5 * 2 * t + 3) ? 1 : 0;
  }
  std::printf("%d wrong, %d calls\n", wrong, count_calls());
  cudaFree(device);
}
