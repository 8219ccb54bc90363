// CUDA graphs, captured and made by hand: the first argument selects the test.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

constexpr int kCount = 256;

__global__ void scale(int* p, int factor) { p[threadIdx.x] *= factor; }  // scale
__global__ void add(int* p, const int* q) { p[threadIdx.x] += q[threadIdx.x]; }
__global__ void beyond(int* p) { p[kCount + threadIdx.x] = 0; }

#define CHECK(call)                                      \
  if (const cudaError_t e = (call); e != cudaSuccess) {  \
    std::printf("%s: %s\n", #call, cudaGetErrorName(e)); \
    return 1;                                            \
  }

// scale(p) and scale(q) side by side, then p += q. With `race`, both scale p.
cudaError_t capture(cudaStream_t s, cudaStream_t side, int* p, int* q, int factor, bool race,
                    cudaGraph_t* graph) {
  cudaEvent_t fork, join;
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, s);
  cudaStreamWaitEvent(side, fork);
  scale<<<1, kCount, 0, s>>>(p, factor);
  scale<<<1, kCount, 0, side>>>(race ? p : q, factor);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(s, join);
  add<<<1, kCount, 0, s>>>(p, q);
  return cudaStreamEndCapture(s, graph);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int *p, *q, host[kCount];
  cudaStream_t s, side;
  CHECK(cudaMalloc(&p, sizeof host));
  CHECK(cudaMalloc(&q, sizeof host));
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  for (int i = 0; i < kCount; ++i) host[i] = i;
  CHECK(cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(q, host, sizeof host, cudaMemcpyHostToDevice));

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  if (std::strcmp(what, "nodes") == 0) {
    cudaGraphNode_t set, kernel, copy;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams zero{};
    zero.dst = q, zero.elementSize = 4, zero.width = kCount, zero.height = 1;
    CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
    int factor = 5;
    void* arguments[] = {&p, &factor};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(scale);
    params.gridDim = dim3(1), params.blockDim = dim3(kCount), params.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &params));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, host, p, sizeof host,
                                   cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    std::printf("%d\n", host[3]);
    return 0;
  }
  if (std::strcmp(what, "fault") == 0) {
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    beyond<<<1, 32, 0, s>>>(p);
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, s));
    std::printf("%s\n", cudaGetErrorName(cudaStreamSynchronize(s)));
    return 0;
  }
  CHECK(capture(s, side, p, q, 2, std::strcmp(what, "race") == 0, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, s));
  CHECK(capture(s, side, p, q, 3, false, &graph));
  cudaGraphExecUpdateResultInfo result;
  CHECK(cudaGraphExecUpdate(exec, graph, &result));
  CHECK(cudaGraphLaunch(exec, s));
  CHECK(cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, s));
  CHECK(cudaStreamSynchronize(s));
  std::printf("%d\n", host[1]);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}
