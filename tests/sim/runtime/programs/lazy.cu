// A kernel that the simulator lacks, next to one that converts to 8 bits. The first is only
// queried, or launched too if there is an argument.
#include <cuda_fp8.h>

#include <cstdio>

template <int kValue>
__global__ void later(float* p) {
  asm volatile("{ .reg .b64 stack; stacksave.u64 stack; }");
  p[threadIdx.x] = kValue;
}

__global__ void now(float* p, unsigned char* code) {
  const __nv_fp8_e4m3 x(2.0f * threadIdx.x);
  code[threadIdx.x] = x.__x;
  p[threadIdx.x] = static_cast<float>(x);
}

int main(int argc, char**) {
  float *p = nullptr, value[64];
  unsigned char *q = nullptr, code[64];
  cudaMalloc(&p, sizeof value);
  cudaMalloc(&q, sizeof code);
  int blocks = 0;
  cudaFuncSetAttribute(later<3>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, later<3>, 64, 0);
  now<<<1, 64>>>(p, q);
  cudaMemcpy(value, p, sizeof value, cudaMemcpyDeviceToHost);
  cudaMemcpy(code, q, sizeof code, cudaMemcpyDeviceToHost);
  std::printf("%s %d %g %g %d\n", cudaGetErrorName(cudaGetLastError()), blocks, value[3], value[33],
              code[33]);
  if (argc > 1) {
    later<3><<<1, 64>>>(p);
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  }
}
