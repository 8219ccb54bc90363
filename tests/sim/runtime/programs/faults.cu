// One fault per run: the first argument selects it.
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void store(int* p, int at) { p[at] = threadIdx.x; }

__global__ void check(int limit) { assert(threadIdx.x < limit); }

__global__ void stop() { __trap(); }

// Every thread reads another thread's slot without waiting for it.
__global__ void race(int* out) {
  __shared__ int slots[64];
  slots[threadIdx.x] = 0;
  __syncthreads();
  slots[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = slots[63 - threadIdx.x];
}

__global__ void decide(const int* p, int* out) {
  if (p[threadIdx.x] > 3) out[0] = 1;
}

// Both blocks write the same value.
__global__ void raise(int* flag) {
  if (threadIdx.x == 0) *flag = 1;
}

__global__ void speak() { printf("too late\n"); }

const char* after() {
  static char text[200];
  const cudaError_t synchronised = cudaDeviceSynchronize();
  void* p = nullptr;
  std::snprintf(text, sizeof text, "%s %s %s", cudaGetErrorName(synchronised),
                cudaGetErrorName(cudaMalloc(&p, 4)), cudaGetErrorName(cudaGetLastError()));
  return text;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const auto is = [&](const char* name) { return std::strcmp(what, name) == 0; };
  int* p = nullptr;
  cudaMalloc(&p, 256);
  if (is("bounds")) store<<<1, 1>>>(p, 64);
  if (is("freed")) {
    cudaFree(p);
    store<<<1, 1>>>(p, 0);
  }
  if (is("misaligned")) store<<<1, 1>>>(reinterpret_cast<int*>(reinterpret_cast<char*>(p) + 2), 0);
  if (is("assert")) check<<<2, 64>>>(40);
  if (is("trap")) stop<<<1, 1>>>();
  if (is("undefined")) decide<<<1, 1>>>(p + 8, p);
  if (is("equal")) raise<<<2, 64>>>(p);
  if (is("race")) race<<<1, 64>>>(p);
  if (is("host")) {
    std::printf("about to\n");
    std::fflush(stdout);
    std::printf("%d\n", *p);
  }
  if (is("shared")) {
    cudaIpcMemHandle_t handle;
    const cudaError_t error = cudaIpcGetMemHandle(&handle, p);
    std::printf("%s\n", cudaGetErrorName(error));
    return 0;
  }
  if (is("status")) return 41;
  if (is("exit")) std::exit(42);
  if (is("abort")) std::abort();
  if (is("lost")) {
    speak<<<1, 1>>>();
    return 0;
  }
  if (is("arguments")) {
    for (int i = 2; i < argc; ++i) std::printf("[%s]\n", argv[i]);
    std::fprintf(stderr, "on stderr\n");
    return 0;
  }
  std::printf("%s\n", after());
  return 0;
}
