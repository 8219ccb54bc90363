// The host program of a program in two files: the kernel is in the other.
#include <cstdio>

int doubled(int value);

static __global__ void own(int* p) { *p += 100; }

int main() {
  int* p = nullptr;
  int value = 0;
  cudaMalloc(&p, sizeof *p);
  cudaMemset(p, 0, sizeof *p);
  own<<<1, 1>>>(p);
  cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost);
  std::printf("%d %d\n", doubled(21), value);
}
