// Which operations happened before which: first with clocks alone, then through the CUDA API.
#include "sim/runtime/stream_order.h"

#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

// An operation, kept to check later whether others know of it.
struct Issued {
  StreamOrder::Index stream;
  std::uint32_t time;
};

class Order : public testing::Test {
 protected:
  Issued issue(StreamOrder::Index s) { return {s, order_.issue(s)}; }
  // Whether the stream's last operation comes after this operation.
  bool knows(StreamOrder::Index s, const Issued& i) const {
    const Clock& clock = order_.clock(s);
    return i.stream < clock.size() && clock[i.stream] >= i.time;
  }
  StreamOrder order_;
};

TEST_F(Order, OneStreamIsInOrder) {
  EXPECT_FALSE(order_.concurrent());
  const Issued first = issue(StreamOrder::kLegacy);
  issue(StreamOrder::kLegacy);
  EXPECT_TRUE(knows(StreamOrder::kLegacy, first));
  EXPECT_FALSE(order_.host_knows(first.stream, first.time));
  EXPECT_FALSE(order_.concurrent());
}

TEST_F(Order, TwoStreamsAreNot) {
  const auto a = order_.open(true), b = order_.open(true);
  EXPECT_TRUE(order_.concurrent());
  const Issued first = issue(a);
  issue(b);
  EXPECT_FALSE(knows(b, first));
}

TEST_F(Order, TheDefaultStreamOrdersWithBlockingStreamsOnly) {
  const auto a = order_.open(true), b = order_.open(true), n = order_.open(false);
  const Issued in_a = issue(a), in_n = issue(n);
  const Issued in_default = issue(StreamOrder::kLegacy);
  EXPECT_TRUE(knows(StreamOrder::kLegacy, in_a));
  EXPECT_FALSE(knows(StreamOrder::kLegacy, in_n));
  issue(b);
  issue(n);
  EXPECT_TRUE(knows(b, in_default));
  EXPECT_TRUE(knows(b, in_a));
  EXPECT_FALSE(knows(n, in_default));
}

TEST_F(Order, AnEventStandsForWhatWasBeforeIt) {
  const auto a = order_.open(false), b = order_.open(false);
  const Issued before = issue(a);
  const Clock event = order_.record(a);
  const Issued after = issue(a);
  order_.wait(b, event);
  issue(b);
  EXPECT_TRUE(knows(b, before));
  EXPECT_FALSE(knows(b, after));
}

TEST_F(Order, AnEventThatNobodyRecordedOrdersNothing) {
  const auto a = order_.open(false), b = order_.open(false);
  const Issued first = issue(a);
  order_.wait(b, {});
  issue(b);
  EXPECT_FALSE(knows(b, first));
}

TEST_F(Order, WhatTheHostWaitedForIsBeforeAllThatItIssues) {
  const auto a = order_.open(false), b = order_.open(false);
  const Issued first = issue(a);
  order_.host_waits_for(a);
  EXPECT_TRUE(order_.host_knows(first.stream, first.time));
  issue(b);
  EXPECT_TRUE(knows(b, first));
  const Issued second = issue(b);
  order_.host_waits_for(a);
  EXPECT_FALSE(order_.host_knows(second.stream, second.time));
  order_.host_waits_for_all();
  EXPECT_TRUE(order_.host_knows(second.stream, second.time));
}

TEST_F(Order, TheHostWaitsForAnEventAlone) {
  const auto a = order_.open(false);
  const Issued before = issue(a);
  const Clock event = order_.record(a);
  const Issued after = issue(a);
  order_.host_waits_for(event);
  EXPECT_TRUE(order_.host_knows(before.stream, before.time));
  EXPECT_FALSE(order_.host_knows(after.stream, after.time));
}

// The stream's work is still under way, and the default stream waits for it.
TEST_F(Order, ADestroyedStreamsIndexIsFreeWhenTheHostKnowsItsWork) {
  const auto a = order_.open(true);
  const Issued last = issue(a);
  order_.close(a);
  const auto b = order_.open(false);
  EXPECT_NE(b, a);
  issue(b);
  EXPECT_FALSE(knows(b, last));
  issue(StreamOrder::kLegacy);
  EXPECT_TRUE(knows(StreamOrder::kLegacy, last));
  order_.host_waits_for_all();
  EXPECT_EQ(order_.open(true), a);
  EXPECT_GT(issue(a).time, last.time);
}

TEST_F(Order, MoreStreamsThanCanBeToldApartShareOne) {
  StreamOrder::Index last = 0;
  for (std::uint32_t i = 1; i < kMaxStreams; ++i) last = order_.open(false), issue(last);
  EXPECT_EQ(last, kMaxStreams - 1);
  EXPECT_EQ(order_.open(true), last);
  const Issued first = issue(last);
  issue(StreamOrder::kLegacy);
  EXPECT_TRUE(knows(StreamOrder::kLegacy, first)) << "one of the two is blocking";
}

// --- the API ---

class StreamOrderApi : public RuntimeTest {
 protected:
  static cudaStream_t stream(unsigned flags = 0) {
    cudaStream_t s = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&s, flags), cudaSuccess);
    return s;
  }
  char* device(std::size_t bytes = 16) {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
    return static_cast<char*>(p);
  }
  char* page_locked(std::size_t bytes = 16) {
    void* p = nullptr;
    EXPECT_EQ(cudaMallocHost(&p, bytes), cudaSuccess);
    std::memset(p, 'h', bytes);
    return static_cast<char*>(p);
  }
  Operation launched(cudaStream_t s) {
    EXPECT_EQ(launch({1, 1, 1}, {32, 1, 1}, 0, s), cudaSuccess);
    return state_.operations.empty() ? Operation{} : state_.operations.back();
  }
  static bool before(const Operation& a, const Operation& b) { return b.knows(a.stream, a.time); }
};

constexpr unsigned kNonBlocking = 1;

TEST_F(StreamOrderApi, TheDeviceIsToldNothingWhileThereIsOneStream) {
  launched(nullptr);
  cudaMemset(device(), 0, 16);
  EXPECT_TRUE(state_.operations.empty());
  stream();
  launched(nullptr);
  EXPECT_EQ(state_.operations.size(), 1u);
  EXPECT_EQ(state_.operations[0].stream_name, "the default stream");
}

TEST_F(StreamOrderApi, EventsOrderStreams) {
  const cudaStream_t a = stream(kNonBlocking), b = stream(kNonBlocking);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const Operation first = launched(a);
  EXPECT_FALSE(before(first, launched(b)));
  EXPECT_EQ(cudaEventRecord(event, a), cudaSuccess);
  EXPECT_FALSE(before(first, launched(b)));
  EXPECT_EQ(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
  EXPECT_TRUE(before(first, launched(b)));
}

TEST_F(StreamOrderApi, WaitingOrdersWhatIsIssuedLater) {
  const cudaStream_t a = stream(kNonBlocking), b = stream(kNonBlocking);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const std::function<cudaError_t()> waits[] = {
      [&] { return cudaStreamSynchronize(a); },
      [&] { return cudaStreamQuery(a); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaEventRecord(event, a), cudaEventSynchronize(event); },
      [&] { return cudaEventRecord(event, a), cudaEventQuery(event); },
      [&] { return cudaFree(device()); },
      [&] {
        return cudaLaunchHostFunc(
            a, [](void*) {}, nullptr);
      },
  };
  for (const auto& wait : waits) {
    const Operation first = launched(a);
    EXPECT_FALSE(before(first, launched(b)));
    EXPECT_EQ(wait(), cudaSuccess);
    EXPECT_TRUE(before(first, launched(b))) << &wait - waits;
  }
}

TEST_F(StreamOrderApi, WhatDoesNotWait) {
  const cudaStream_t a = stream(kNonBlocking), b = stream(kNonBlocking);
  char *p = device(), *q = device();
  const std::function<cudaError_t()> calls[] = {
      [&] { return cudaStreamSynchronize(b); },
      [&] { return cudaStreamSynchronize(nullptr); },
      [&] { return cudaMemset(p, 0, 16); },
      [&] { return cudaMemcpy(p, q, 16, cudaMemcpyDeviceToDevice); },
      [&] { return cudaFree(nullptr); },
  };
  for (const auto& call : calls) {
    const Operation first = launched(a);
    EXPECT_EQ(call(), cudaSuccess);
    EXPECT_FALSE(before(first, launched(b))) << &call - calls;
  }
}

// When cudaMemcpy returns, it has read the pageable memory, but the data need not have reached the
// device.
TEST_F(StreamOrderApi, CopiesWithoutAsync) {
  const cudaStream_t n = stream(kNonBlocking);
  char *p = device(), host[16] = {}, *locked = page_locked();
  cudaMemcpy(p, host, 16, cudaMemcpyHostToDevice);
  const Operation staged = state_.operations.back();
  EXPECT_FALSE(before(staged, launched(n)));
  EXPECT_TRUE(before(staged, launched(nullptr)));
  cudaMemcpy(p, locked, 16, cudaMemcpyHostToDevice);
  const Operation direct = state_.operations.back();
  EXPECT_TRUE(before(direct, launched(n)));
  cudaMemcpy(host, p, 16, cudaMemcpyDeviceToHost);
  const Operation back = state_.operations.back();
  EXPECT_TRUE(before(back, launched(n)));
}

TEST_F(StreamOrderApi, TheThreadsOwnStreamIsABlockingOne) {
  const auto own = reinterpret_cast<cudaStream_t>(2);
  const Operation first = launched(own), other = launched(stream());
  EXPECT_FALSE(before(first, other));
  EXPECT_TRUE(before(first, launched(nullptr)));
}

// Declared by CUDA's headers in programs compiled with --default-stream per-thread.
extern "C" cudaError_t cudaLaunchKernel_ptsz(const void*, dim3, dim3, void**, std::size_t,
                                             cudaStream_t);

TEST_F(StreamOrderApi, PerThreadVariantsMeanTheThreadsOwnStream) {
  stream();
  EXPECT_EQ(cudaLaunchKernel_ptsz(&stub_, {1, 1, 1}, {32, 1, 1}, args_, 0, nullptr), cudaSuccess);
  EXPECT_EQ(state_.operations.back().stream_name, "the thread's default stream");
  const auto legacy = reinterpret_cast<cudaStream_t>(1);
  EXPECT_EQ(cudaLaunchKernel_ptsz(&stub_, {1, 1, 1}, {32, 1, 1}, args_, 0, legacy), cudaSuccess);
  EXPECT_EQ(state_.operations.back().stream_name, "the default stream");
}

TEST_F(StreamOrderApi, AllocationsInAStreamCountAsWrites) {
  const cudaStream_t a = stream();
  void* p = nullptr;
  EXPECT_EQ(cudaMallocAsync(&p, 16, a), cudaSuccess);
  EXPECT_EQ(state_.operations.back().call, "cudaMallocAsync");
  EXPECT_EQ(cudaFreeAsync(p, a), cudaSuccess);
  EXPECT_EQ(state_.operations.back().call, "cudaFreeAsync");
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  EXPECT_EQ(state_.touched, (std::vector<std::uint64_t>{address, address}));
}

// --- host memory ---

TEST_F(StreamOrderApi, PageLockedMemoryChangesWhenTheHostHasWaited) {
  char *p = device(), *host = page_locked();
  cudaMemset(p, 'd', 16);
  EXPECT_EQ(cudaMemcpyAsync(host, p, 16, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  EXPECT_EQ(host[0], 'h') << "the copy may not have begun";
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(host[0], 'd');
}

TEST_F(StreamOrderApi, CopiesWithoutAsyncAreThereAtOnce) {
  char *p = device(), *host = page_locked();
  cudaMemset(p, 'd', 16);
  EXPECT_EQ(cudaMemcpy(host, p, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host[15], 'd');
}

TEST_F(StreamOrderApi, WaitingForAnotherStreamBringsNothing) {
  const cudaStream_t a = stream(kNonBlocking), b = stream(kNonBlocking);
  char *p = device(), *host = page_locked();
  cudaMemset(p, 'd', 16);
  cudaDeviceSynchronize();
  cudaMemcpyAsync(host, p, 16, cudaMemcpyDeviceToHost, a);
  cudaStreamSynchronize(b);
  EXPECT_EQ(host[0], 'h');
  cudaStreamQuery(a);
  EXPECT_EQ(host[0], 'd');
}

TEST_F(StreamOrderApi, PageableMemoryChangesAtOnce) {
  char *p = device(), host[16] = {};
  cudaMemset(p, 'd', 16);
  cudaMemcpyAsync(host, p, 16, cudaMemcpyDeviceToHost, nullptr);
  EXPECT_EQ(host[0], 'd');
  char registered[16] = {};
  ASSERT_EQ(cudaHostRegister(registered, 16, 0), cudaSuccess);
  cudaMemcpyAsync(registered, p, 16, cudaMemcpyDeviceToHost, nullptr);
  EXPECT_EQ(registered[0], 0);
  EXPECT_EQ(cudaHostUnregister(registered), cudaSuccess);
  EXPECT_EQ(registered[0], 'd');
}

TEST_F(StreamOrderApi, AnEarlierCopyDoesNotOverwriteALaterOne) {
  char *p = device(), *host = page_locked();
  cudaMemset(p, '1', 16);
  cudaMemcpyAsync(host, p, 16, cudaMemcpyDeviceToHost, nullptr);
  cudaMemset(p, '2', 16);
  cudaMemcpy(host, p, 8, cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  EXPECT_EQ(std::string(host, 16), "2222222211111111");
}

TEST_F(StreamOrderApi, ACopyBackReadsWhatTheStreamPutThere) {
  char *p = device(), *q = device(), *host = page_locked(), back[16] = {};
  cudaMemset(p, 'd', 16);
  cudaMemcpyAsync(host, p, 16, cudaMemcpyDeviceToHost, nullptr);
  cudaMemcpyAsync(q, host, 16, cudaMemcpyHostToDevice, nullptr);
  cudaMemcpy(back, q, 16, cudaMemcpyDeviceToHost);
  EXPECT_EQ(back[15], 'd');
  EXPECT_TRUE(state_.findings.empty());
}

TEST_F(StreamOrderApi, ASourceThatChangesTooEarlyIsAFinding) {
  char *p = device(), *host = page_locked();
  cudaMemcpyAsync(p, host, 16, cudaMemcpyHostToDevice, nullptr);
  host[3] = 'x';
  EXPECT_TRUE(state_.findings.empty());
  cudaDeviceSynchronize();
  ASSERT_EQ(state_.findings.size(), 1u);
  EXPECT_EQ(state_.findings[0].kind, FindingKind::late_change);
  EXPECT_EQ(state_.findings[0].kernel, "cudaMemcpyAsync");
  EXPECT_THAT(state_.findings[0].text, testing::HasSubstr("before the host waited"));
  host[3] = 'y';
  cudaDeviceSynchronize();
  EXPECT_EQ(state_.findings.size(), 1u);
}

TEST_F(StreamOrderApi, PageableSourcesMayChange) {
  char *p = device(), host[16] = {};
  cudaMemcpyAsync(p, host, 16, cudaMemcpyHostToDevice, nullptr);
  host[3] = 'x';
  cudaDeviceSynchronize();
  EXPECT_TRUE(state_.findings.empty());
}

TEST_F(StreamOrderApi, AFunctionOfTheStreamSeesWhatTheStreamCopied) {
  char *p = device(), *host = page_locked();
  cudaMemset(p, 'd', 16);
  cudaMemcpyAsync(host, p, 16, cudaMemcpyDeviceToHost, nullptr);
  static char seen = 0;
  cudaLaunchHostFunc(
      nullptr, [](void* at) { seen = *static_cast<char*>(at); }, host);
  EXPECT_EQ(seen, 'd');
}

}  // namespace
}  // namespace assay::sim::cuda
