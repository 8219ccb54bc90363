// Capture of streams into graphs, through the API on a fake device.
#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

constexpr auto kGlobal = cudaStreamCaptureModeGlobal, kRelaxed = cudaStreamCaptureModeRelaxed;

class CaptureApi : public RuntimeTest {
 protected:
  static cudaStream_t stream(unsigned flags = 1) {
    cudaStream_t s = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&s, flags), cudaSuccess);
    return s;
  }
  static cudaEvent_t event() {
    cudaEvent_t e = nullptr;
    EXPECT_EQ(cudaEventCreate(&e), cudaSuccess);
    return e;
  }
  static void begin(cudaStream_t s, cudaStreamCaptureMode mode = kGlobal) {
    EXPECT_EQ(cudaStreamBeginCapture(s, mode), cudaSuccess);
  }
  cudaError_t launch_in(cudaStream_t s) { return launch({1, 1, 1}, {32, 1, 1}, 0, s); }
  char* device() {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, 16), cudaSuccess);
    return static_cast<char*>(p);
  }
  static cudaError_t end(cudaStream_t s, cudaGraph_t& graph) {
    return cudaStreamEndCapture(s, &graph);
  }
  static cudaError_t end(cudaStream_t s) {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = end(s, graph);
    EXPECT_EQ(graph == nullptr, error != cudaSuccess);
    return error;
  }
  static std::size_t nodes(cudaGraph_t g) {
    std::size_t n = 0;
    EXPECT_EQ(cudaGraphGetNodes(g, nullptr, &n), cudaSuccess);
    return n;
  }
  static cudaError_t launch_graph(cudaGraph_t g, cudaStream_t s) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, g, 0), cudaSuccess);
    return cudaGraphLaunch(exec, s);
  }
  static cudaStreamCaptureStatus status(cudaStream_t s) {
    cudaStreamCaptureStatus out{};
    EXPECT_EQ(cudaStreamIsCapturing(s, &out), cudaSuccess);
    return out;
  }
};

TEST_F(CaptureApi, WhatIsIssuedBecomesNodes) {
  const cudaStream_t s = stream();
  char *p = device(), host[16] = {};
  int called = 0;
  begin(s);
  EXPECT_EQ(status(s), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaMemsetAsync(p, 'x', 16, s), cudaSuccess);
  EXPECT_EQ(launch_in(s), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(host, p, 15, cudaMemcpyDeviceToHost, s), cudaSuccess);
  EXPECT_EQ(cudaLaunchHostFunc(
                s, [](void* n) { ++*static_cast<int*>(n); }, &called),
            cudaSuccess);
  cudaGraph_t g = nullptr;
  EXPECT_EQ(end(s, g), cudaSuccess);
  EXPECT_EQ(status(s), cudaStreamCaptureStatusNone);
  EXPECT_EQ(nodes(g), 4u);
  EXPECT_TRUE(state_.launches.empty());
  EXPECT_EQ(called, 0);
  EXPECT_EQ(launch_graph(g, s), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_EQ(state_.launches.size(), 1u);
  EXPECT_STREQ(host, "xxxxxxxxxxxxxxx");
  EXPECT_EQ(called, 1);
}

bool before(const Operation& a, const Operation& b) { return b.knows(a.stream, a.time); }

TEST_F(CaptureApi, EventsForkAndJoin) {
  const cudaStream_t s = stream(), side = stream();
  const cudaEvent_t fork = event(), join = event();
  begin(s);
  launch_in(s);
  EXPECT_EQ(cudaEventRecord(fork, s), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  EXPECT_EQ(status(side), cudaStreamCaptureStatusActive);
  launch_in(side);
  launch_in(s);
  EXPECT_EQ(cudaEventRecord(join, side), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(s, join, 0), cudaSuccess);
  launch_in(s);
  cudaGraph_t g = nullptr;
  EXPECT_EQ(end(s, g), cudaSuccess);
  EXPECT_EQ(status(side), cudaStreamCaptureStatusNone);
  EXPECT_EQ(launch_graph(g, s), cudaSuccess);
  const auto& o = state_.operations;
  ASSERT_EQ(o.size(), 4u);
  EXPECT_TRUE(before(o[0], o[1]) && before(o[0], o[2]) && before(o[1], o[3]) && before(o[2], o[3]));
  EXPECT_FALSE(before(o[1], o[2]) || before(o[2], o[1]));
}

TEST_F(CaptureApi, UnjoinedWork) {
  const cudaStream_t s = stream(), side = stream();
  const cudaEvent_t fork = event();
  begin(s);
  EXPECT_EQ(cudaEventRecord(fork, s), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  launch_in(side);
  EXPECT_EQ(end(s), cudaErrorStreamCaptureUnjoined);
}

TEST_F(CaptureApi, TheStreamOfTheBeginEndsIt) {
  const cudaStream_t s = stream(), side = stream();
  const cudaEvent_t fork = event();
  EXPECT_EQ(end(s), cudaErrorIllegalState);
  begin(s);
  EXPECT_EQ(cudaEventRecord(fork, s), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  EXPECT_EQ(end(side), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(s), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureApi, TheDefaultStreamCannotBeCaptured) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, kGlobal), cudaErrorStreamCaptureUnsupported);
  begin(reinterpret_cast<cudaStream_t>(2));
  EXPECT_EQ(end(reinterpret_cast<cudaStream_t>(2)), cudaSuccess);
}

// A call that waits for a captured stream invalidates the capture.
TEST_F(CaptureApi, WhatWaitsSpoilsIt) {
  const cudaStream_t s = stream();
  const cudaEvent_t e = event();
  char* p = device();
  const std::pair<std::function<cudaError_t()>, cudaError_t> calls[] = {
      {[&] { return cudaStreamSynchronize(s); }, cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaStreamQuery(s); }, cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported},
      {[&] {
         void* q;
         return cudaMalloc(&q, 1);
       },
       cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaMemcpy(p, p, 1, cudaMemcpyDefault); }, cudaErrorStreamCaptureUnsupported},
      {[&] {
         void* q;
         return cudaMallocAsync(&q, 1, s);
       },
       cudaErrorNotSupported},
  };
  for (const auto& [call, error] : calls) {
    begin(s);
    EXPECT_EQ(call(), error) << &call - &calls[0].first;
    EXPECT_EQ(status(s), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(launch_in(s), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end(s), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(status(s), cudaStreamCaptureStatusNone);
  }
  begin(s);
  EXPECT_EQ(cudaEventRecord(e, s), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(e), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventQuery(e), cudaErrorCapturedEvent);
  EXPECT_EQ(end(s), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(s, e, 0), cudaErrorCapturedEvent);
}

TEST_F(CaptureApi, ARelaxedOneLetsTheHostAllocate) {
  const cudaStream_t s = stream();
  begin(s, kRelaxed);
  device();
  EXPECT_EQ(end(s), cudaSuccess);
  begin(s);
  cudaStreamCaptureMode mode = kRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, kGlobal);
  device();
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(end(s), cudaSuccess);
}

TEST_F(CaptureApi, TheDefaultStreamIsForbiddenBesideABlockingOne) {
  const cudaStream_t blocking = stream(0), s = stream();
  begin(s);
  EXPECT_EQ(launch_in(nullptr), cudaSuccess);
  EXPECT_EQ(end(s), cudaSuccess);
  begin(blocking);
  EXPECT_EQ(launch_in(nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(end(blocking), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureApi, TwoDoNotMix) {
  const cudaStream_t s = stream(), t = stream();
  const cudaEvent_t inside = event(), outside = event();
  EXPECT_EQ(cudaEventRecord(outside, t), cudaSuccess);
  begin(s);
  EXPECT_EQ(cudaStreamWaitEvent(s, outside, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(s), cudaErrorStreamCaptureInvalidated);
  begin(s);
  begin(t);
  EXPECT_EQ(cudaEventRecord(inside, s), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(t, inside, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(end(s), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(t), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureApi, IntoAGraphThatIsThere) {
  const cudaStream_t s = stream();
  cudaGraph_t g = nullptr, out = nullptr;
  cudaGraphNode_t n = nullptr;
  ASSERT_EQ(cudaGraphCreate(&g, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphAddEmptyNode(&n, g, nullptr, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCaptureToGraph(s, g, &n, nullptr, 1, kGlobal), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(g), cudaErrorInvalidValue);
  launch_in(s);
  cudaStreamCaptureStatus is{};
  unsigned long long id = 0;
  const cudaGraphNode_t* last = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(cudaStreamGetCaptureInfo(s, &is, &id, &out, &last, nullptr, &count), cudaSuccess);
  EXPECT_EQ(is, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(out, g);
  ASSERT_EQ(count, 1u);
  cudaGraphNodeType type{};
  EXPECT_EQ(cudaGraphNodeGetType(*last, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeKernel);
  EXPECT_EQ(end(s, out), cudaSuccess);
  EXPECT_EQ(out, g);
  EXPECT_EQ(nodes(g), 2u);
}

TEST_F(CaptureApi, AStreamThatIsDestroyedTakesItsCaptureAlong) {
  const cudaStream_t s = stream();
  begin(s);
  EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
  device();
}

}  // namespace
}  // namespace assay::sim::cuda
