// What ordinary programs do, each part compared with the host. Prints one line per part.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#define CHECK(call)                                                                           \
  do {                                                                                        \
    const cudaError_t error = (call);                                                         \
    if (error != cudaSuccess) {                                                               \
      std::printf("%s: %s: %s\n", #call, cudaGetErrorName(error), cudaGetErrorString(error)); \
      std::exit(1);                                                                           \
    }                                                                                         \
  } while (0)

void report(const char* part, bool good) { std::printf("%s %s\n", part, good ? "good" : "WRONG"); }

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

void vector_add() {
  constexpr int n = 1000;
  std::vector<float> a(n), b(n, 0.5f), c(n);
  std::iota(a.begin(), a.end(), 1.0f);
  float *da, *db, *dc;
  CHECK(cudaMalloc(&da, n * sizeof(float)));
  CHECK(cudaMalloc(&db, n * sizeof(float)));
  CHECK(cudaMalloc(&dc, n * sizeof(float)));
  CHECK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost));
  bool good = true;
  for (int i = 0; i < n; ++i) good = good && c[i] == a[i] + b[i];
  CHECK(cudaFree(da));
  CHECK(cudaFree(db));
  CHECK(cudaFree(dc));
  report("vector add", good);
}

template <class T, int kThreads>
__global__ void reduce(const T* in, T* out) {
  __shared__ T part[kThreads];
  part[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

template <class T>
bool reduction() {
  constexpr int blocks = 3, threads = 128;
  std::vector<T> in(blocks * threads), out(blocks);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(i % 17);
  T *din, *dout;
  CHECK(cudaMalloc(&din, in.size() * sizeof(T)));
  CHECK(cudaMalloc(&dout, out.size() * sizeof(T)));
  CHECK(cudaMemcpy(din, in.data(), in.size() * sizeof(T), cudaMemcpyDefault));
  reduce<T, threads><<<blocks, threads>>>(din, dout);
  CHECK(cudaMemcpy(out.data(), dout, out.size() * sizeof(T), cudaMemcpyDefault));
  bool good = true;
  for (int b = 0; b < blocks; ++b) {
    good = good &&
           out[b] == std::accumulate(in.begin() + b * threads, in.begin() + (b + 1) * threads, T{});
  }
  CHECK(cudaFree(din));
  CHECK(cudaFree(dout));
  return good;
}

__constant__ int kTable[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__device__ float matrix[2][3];

namespace {
__global__ void use_symbols(int* out) {
  out[threadIdx.x] = kTable[threadIdx.x] * 10;
  atomicAdd(&counter, 2);
  if (threadIdx.x < 3) matrix[1][threadIdx.x] = threadIdx.x + 0.25f;
}
}  // namespace

void symbols() {
  const int table[2] = {30, 40};
  CHECK(cudaMemcpyToSymbol(kTable, table, sizeof table, 2 * sizeof(int)));
  int* d;
  CHECK(cudaMalloc(&d, 4 * sizeof(int)));
  use_symbols<<<1, 4>>>(d);
  int out[4], count = 0;
  float row[3];
  CHECK(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  CHECK(cudaMemcpyFromSymbol(row, matrix, sizeof row, sizeof row));
  void* address = nullptr;
  std::size_t bytes = 0;
  CHECK(cudaGetSymbolAddress(&address, counter));
  CHECK(cudaGetSymbolSize(&bytes, matrix));
  int again = 0;
  CHECK(cudaMemcpy(&again, address, sizeof again, cudaMemcpyDeviceToHost));
  report("constants", out[0] == 10 && out[1] == 20 && out[2] == 300 && out[3] == 400);
  report("globals", count == 13 && again == 13 && row[2] == 2.25f && bytes == 24);
  CHECK(cudaFree(d));
}

extern __shared__ int dynamic[];
__global__ void reverse(int* data, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) dynamic[i] = data[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = dynamic[n - 1 - i];
}

void dynamic_shared() {
  constexpr int n = 20000, bytes = n * sizeof(int);  // more than 48 KiB
  std::vector<int> data(n);
  std::iota(data.begin(), data.end(), 0);
  int* d;
  CHECK(cudaMalloc(&d, bytes));
  CHECK(cudaMemcpy(d, data.data(), bytes, cudaMemcpyHostToDevice));
  reverse<<<1, 256, bytes>>>(d, n);
  const bool refused = cudaGetLastError() == cudaErrorInvalidValue;
  CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  reverse<<<1, 256, bytes>>>(d, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(data.data(), d, bytes, cudaMemcpyDeviceToHost));
  report("dynamic shared memory", refused && data[0] == n - 1 && data[n - 1] == 0);
  CHECK(cudaFree(d));
}

__global__ void increment(int* p) { *p += 1; }

void streams_and_events() {
  cudaStream_t a, b;
  cudaEvent_t start, done;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&done));
  int *d, *host;
  CHECK(cudaMallocHost(&host, sizeof *host));
  CHECK(cudaMallocAsync(&d, sizeof *d, a));
  CHECK(cudaMemsetAsync(d, 0, sizeof *d, a));
  CHECK(cudaEventRecord(start, a));
  increment<<<1, 1, 0, a>>>(d);
  CHECK(cudaEventRecord(done, a));
  CHECK(cudaStreamWaitEvent(b, done, 0));
  increment<<<1, 1, 0, b>>>(d);
  CHECK(cudaMemcpyAsync(host, d, sizeof *d, cudaMemcpyDeviceToHost, b));
  CHECK(cudaFreeAsync(d, b));
  CHECK(cudaStreamSynchronize(b));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, done));
  report("streams and events", *host == 2 && ms > 0 && cudaStreamQuery(a) == cudaSuccess);
  CHECK(cudaFreeHost(host));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
}

__global__ void transpose(const char* in, std::size_t in_pitch, char* out, std::size_t out_pitch) {
  out[threadIdx.x * out_pitch + threadIdx.y] = in[threadIdx.y * in_pitch + threadIdx.x];
}

void rectangles() {
  const char text[] =
      "abcd"
      "efgh"
      "ijkl";
  char out[13] = {};
  char *a, *b;
  std::size_t a_pitch, b_pitch;
  CHECK(cudaMallocPitch(&a, &a_pitch, 4, 3));
  CHECK(cudaMallocPitch(&b, &b_pitch, 3, 4));
  CHECK(cudaMemcpy2D(a, a_pitch, text, 4, 4, 3, cudaMemcpyHostToDevice));
  transpose<<<1, dim3(4, 3)>>>(a, a_pitch, b, b_pitch);
  CHECK(cudaMemcpy2D(out, 3, b, b_pitch, 3, 4, cudaMemcpyDeviceToHost));
  report("rectangles", std::strcmp(out, "aeibfjcgkdhl") == 0);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

__global__ void __launch_bounds__(128) bounded(int*) {}

void occupancy() {
  int blocks = 0, grid = 0, block = 0, device = -1;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 128, 0));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded));
  cudaFuncAttributes a;
  CHECK(cudaFuncGetAttributes(&a, bounded));
  cudaDeviceProp p;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaGetDeviceProperties(&p, device));
  report("occupancy", blocks == 16 && block == 128 && grid == 16 * p.multiProcessorCount &&
                          a.maxThreadsPerBlock == 128);
  report("properties", p.major == 9 && p.minor == 0 && p.warpSize == 32 &&
                           p.sharedMemPerBlockOptin == 227 << 10 && p.cooperativeLaunch == 1 &&
                           p.hostNumaMultinodeIpcSupported == 0 &&
                           std::strncmp(p.name, "assay", 5) == 0);
}

__global__ void halves(__half2* p) {
  p[threadIdx.x] = __hfma2(p[threadIdx.x], __float2half2_rn(2.0f), p[threadIdx.x]);
}

void half_precision() {
  std::vector<__half2> h(32, __floats2half2_rn(1.5f, -0.5f));
  __half2* d;
  CHECK(cudaMalloc(&d, sizeof(__half2) * h.size()));
  CHECK(cudaMemcpy(d, h.data(), sizeof(__half2) * h.size(), cudaMemcpyHostToDevice));
  halves<<<1, 32>>>(d);
  CHECK(cudaMemcpy(h.data(), d, sizeof(__half2) * h.size(), cudaMemcpyDeviceToHost));
  report("half precision", __low2float(h[31]) == 4.5f && __high2float(h[0]) == -1.5f);
  CHECK(cudaFree(d));
}

__global__ void speak(const char* who, double x) {
  if (threadIdx.x % 2 == 0) printf("thread %d of %u says %5.2f%%\n", threadIdx.x, blockDim.x, x);
}

void errors() {
  increment<<<1, 2000>>>(nullptr);
  const bool configuration = cudaGetLastError() == cudaErrorInvalidConfiguration;
  const bool forgotten = cudaGetLastError() == cudaSuccess;
  int host = 0;
  const bool direction =
      cudaMemcpy(&host, &host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue;
  const bool unknown = cudaFree(&host) == cudaErrorInvalidValue;
  cudaGetLastError();
  report("errors", configuration && forgotten && direction && unknown);
}

int main() {
  vector_add();
  report("reduction in float", reduction<float>());
  report("reduction in double", reduction<double>());
  report("reduction in int", reduction<int>());
  symbols();
  dynamic_shared();
  streams_and_events();
  rectangles();
  occupancy();
  half_precision();
  errors();
  speak<<<1, 4>>>("kernel", 12.345);
  std::printf("before the kernel's output\n");
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaDeviceReset());
  return 0;
}
