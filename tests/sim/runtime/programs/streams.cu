// What streams and events order and what they leave open: the first argument selects the test.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

constexpr int kCount = 1 << 12;

__global__ void produce(int* p, int begin, int step) {
  const int i = begin + step * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kCount) p[i] = i;  // produce
}

__global__ void consume(const int* p, int* sum) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int value = p[i];  // consume
  atomicAdd(sum, value);
}

void produce_in(cudaStream_t s, int* p, int begin = 0, int step = 1) {
  produce<<<kCount / 128, 128, 0, s>>>(p, begin, step);
}

void consume_in(cudaStream_t s, const int* p, int* sum) {
  consume<<<kCount / 128, 128, 0, s>>>(p, sum);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const auto is = [&](const char* name) { return std::strcmp(what, name) == 0; };
  int *p = nullptr, *sum = nullptr, *host = nullptr;
  cudaMalloc(&p, kCount * sizeof(int));
  cudaMalloc(&sum, sizeof(int));
  cudaMallocHost(&host, kCount * sizeof(int));
  std::memset(host, 0, kCount * sizeof(int));
  cudaStream_t blocking, a, b;
  cudaStreamCreate(&blocking);
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaMemset(sum, 0, sizeof(int));
  cudaMemset(p, 0, kCount * sizeof(int));
  cudaDeviceSynchronize();

  if (is("nothing") || is("event")) {
    produce_in(a, p);
    cudaEventRecord(event, a);
    if (is("event")) cudaStreamWaitEvent(b, event);
    consume_in(b, p, sum);
  }
  if (is("default, blocking")) {
    produce_in(nullptr, p);
    consume_in(blocking, p, sum);
    produce_in(nullptr, p);
  }
  if (is("default, non-blocking")) {
    produce_in(nullptr, p);
    consume_in(a, p, sum);
  }
  if (is("readers")) {
    for (cudaStream_t s : {a, b, blocking}) consume_in(s, p, sum);
  }
  if (is("halves")) {
    produce_in(a, p, kCount / 2);
    cudaMemsetAsync(p, 1, kCount * sizeof(int) / 2, b);
  }
  if (is("interleaved")) {
    produce_in(a, p, 0, 2);
    produce_in(b, p, 1, 2);
  }
  if (is("copy")) {
    produce_in(a, p);
    cudaMemcpyAsync(host, p, kCount * sizeof(int), cudaMemcpyDeviceToHost, b);
  }
  if (is("free")) {
    int* own = nullptr;
    cudaMallocAsync(&own, kCount * sizeof(int), a);
    produce_in(a, own);
    cudaFreeAsync(own, b);
  }
  if (is("early") || is("waited")) {
    produce_in(a, p);
    cudaMemcpyAsync(host, p, kCount * sizeof(int), cudaMemcpyDeviceToHost, a);
    if (is("waited")) cudaStreamSynchronize(a);
    std::printf("%d\n", host[kCount - 1]);
  }
  if (is("overwritten") || is("overwritten after waiting")) {
    cudaMemcpyAsync(p, host, kCount * sizeof(int), cudaMemcpyHostToDevice, a);
    if (is("overwritten after waiting")) cudaStreamSynchronize(a);
    host[7] = 1;
  }
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
