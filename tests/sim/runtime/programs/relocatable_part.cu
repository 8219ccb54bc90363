// What relocatable.cu uses; `offset` is not its offset.
#include <cuda_runtime.h>

static __device__ float offset = 2;
__device__ int calls;
__constant__ float factor;

__device__ float scaled(float x) { return x * offset * factor; }

int set_factor(float value) { return cudaMemcpyToSymbol(factor, &value, sizeof value); }

int count_calls() {
  int count = -1;
  cudaMemcpyFromSymbol(&count, calls, sizeof count);
  return count;
}
