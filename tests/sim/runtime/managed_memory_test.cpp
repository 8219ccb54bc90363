// Managed memory: pages and changes alone, then through the API on a fake device.
#include "sim/runtime/managed_memory.h"

#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Outside the addresses of the fake device.
constexpr std::uint64_t kBegin = kGlobalRange.begin + (std::uint64_t{1} << 30) + 256;

char* host(std::uint64_t address) { return reinterpret_cast<char*>(address); }

std::vector<std::pair<std::uint64_t, std::size_t>> changes(ManagedMemory& m, bool exactly) {
  std::vector<std::pair<std::uint64_t, std::size_t>> out;
  m.send_changes(exactly, [&](std::uint64_t to, std::span<const std::byte> from) {
    EXPECT_EQ(std::memcmp(host(to), from.data(), from.size()), 0);
    out.emplace_back(to - kBegin, from.size());
  });
  return out;
}

TEST(ManagedMemory, ChangesAreRunsOfBytes) {
  ManagedMemory m;
  ASSERT_TRUE(m.add(kBegin, 20000));
  EXPECT_THAT(changes(m, true), ElementsAre());
  host(kBegin)[0] = host(kBegin)[1] = host(kBegin)[3] = 'x';
  host(kBegin)[19999] = 'x';
  EXPECT_THAT(changes(m, true), ElementsAre(Pair(0, 2), Pair(3, 1), Pair(19999, 1)));
  EXPECT_THAT(changes(m, true), ElementsAre()) << "sent";
  host(kBegin)[0] = host(kBegin)[1] = host(kBegin)[3] = 'y';
  host(kBegin)[5000] = 'y';
  EXPECT_THAT(changes(m, false), ElementsAre(Pair(0, 4), Pair(5000, 1)));
}

TEST(ManagedMemory, WhatIsFetchedIsNoChange) {
  ManagedMemory m;
  ASSERT_TRUE(m.add(kBegin, 8));
  m.fetch([](std::span<std::byte> to, std::uint64_t) { std::ranges::fill(to, std::byte{'d'}); });
  EXPECT_EQ(std::string(host(kBegin), 8), "dddddddd");
  EXPECT_THAT(changes(m, true), ElementsAre());
}

TEST(ManagedMemory, WhatIsFetchedLeavesWhatTheHostWroteBesideIt) {
  ManagedMemory m;
  ASSERT_TRUE(m.add(kBegin, 4));
  host(kBegin)[1] = 'h';
  m.fetch([](std::span<std::byte> to, std::uint64_t) { to[3] = std::byte{'d'}; });
  EXPECT_EQ(std::string(host(kBegin), 4), std::string("\0h\0d", 4));
  EXPECT_THAT(changes(m, true), ElementsAre(Pair(1, 1)));
}

TEST(ManagedMemory, ACopyOfHostMemoryIsSentAsWhatItHolds) {
  ManagedMemory m;
  std::string own = "own";
  m.mirror(kBegin, reinterpret_cast<std::byte*>(own.data()), own.size());
  EXPECT_FALSE(m.contains(kBegin)) << "the host has it elsewhere";
  std::string sent;
  m.send_changes(true, [&](std::uint64_t to, std::span<const std::byte> from) {
    EXPECT_EQ(to, kBegin);
    sent.assign(reinterpret_cast<const char*>(from.data()), from.size());
  });
  EXPECT_EQ(sent, "own");
  m.fetch([](std::span<std::byte> to, std::uint64_t) { std::ranges::fill(to, std::byte{'d'}); });
  EXPECT_EQ(own, "ddd");
  m.remove(kBegin);
  own[0] = 'x';
  EXPECT_TRUE(m.empty());
}

TEST(ManagedMemory, ExtentsAndNeighbours) {
  ManagedMemory m;
  ASSERT_TRUE(m.add(kBegin, 100));
  ASSERT_TRUE(m.add(kBegin + 512, 100));
  EXPECT_TRUE(m.contains(kBegin + 99));
  EXPECT_FALSE(m.contains(kBegin + 100));
  EXPECT_FALSE(m.contains(kBegin + 90, 11));
  m.remove(kBegin);
  EXPECT_FALSE(m.contains(kBegin));
  host(kBegin + 512)[0] = 'x';
  EXPECT_THAT(changes(m, true), ElementsAre(Pair(512, 1)));
  EXPECT_EXIT(m.remove(kBegin + 512);
              host(kBegin + 512)[0] = 'x', testing::KilledBySignal(SIGSEGV), "");
}

class Managed : public RuntimeTest {
 protected:
  static char* allocate(std::size_t bytes) {
    void* p = nullptr;
    EXPECT_EQ(cudaMallocManaged(&p, bytes, 1), cudaSuccess);
    return static_cast<char*>(p);
  }
  std::string on_device(const char* p) {
    const auto& bytes = state_.memory.at(reinterpret_cast<std::uintptr_t>(p));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void set_on_device(const char* p, char value) {
    std::ranges::fill(state_.memory.at(reinterpret_cast<std::uintptr_t>(p)), std::byte(value));
  }
};

TEST_F(Managed, TheDeviceHasWhatTheHostWroteBeforeALaunch) {
  char* const p = allocate(4);
  std::ranges::copy(std::string_view("host"), p);
  launch({1, 1, 1}, {32, 1, 1});
  EXPECT_EQ(on_device(p), "host");
  EXPECT_EQ(state_.writes, 1u);
  launch({1, 1, 1}, {32, 1, 1});
  EXPECT_EQ(state_.writes, 1u) << "nothing changed";
}

TEST_F(Managed, TheHostHasWhatTheDeviceWroteWhenItHasWaited) {
  char* const p = allocate(4);
  launch({1, 1, 1}, {32, 1, 1});
  set_on_device(p, 'd');
  EXPECT_EQ(p[0], 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(std::string(p, 4), "dddd");
  EXPECT_EQ(state_.peeks, 1u);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(state_.peeks, 1u) << "nothing was issued since";
}

// Newer bytes of the device next to the host's are kept.
TEST_F(Managed, OnlyWhatTheHostWroteIsSentWhileItHasNotWaited) {
  char* const p = allocate(4);
  launch({1, 1, 1}, {32, 1, 1});
  set_on_device(p, 'd');
  p[0] = p[2] = 'h';
  launch({1, 1, 1}, {32, 1, 1});
  EXPECT_EQ(on_device(p), "hdhd");
}

TEST_F(Managed, TheHostsWritesAreOrderedAsTheHostIs) {
  char* const p = allocate(4);
  cudaStream_t s = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&s, 1), cudaSuccess);
  launch({1, 1, 1}, {32, 1, 1}, 0, s);
  const Operation kernel = state_.operations.back();
  state_.operations.clear();
  p[0] = 'h';
  launch({1, 1, 1}, {32, 1, 1}, 0, s);
  ASSERT_EQ(state_.operations.size(), 2u);
  const Operation& write = state_.operations[0];
  EXPECT_EQ(write.call, "the host");
  EXPECT_FALSE(write.knows(kernel.stream, kernel.time)) << "the host has not waited";
  EXPECT_TRUE(state_.operations[1].knows(write.stream, write.time));
}

// A GPU lets the host write other bytes than a kernel that is under way.
TEST_F(Managed, WhatTheHostWroteDuringALaunchIsNotLost) {
  char* const p = allocate(4);
  launch({1, 1, 1}, {32, 1, 1});
  state_.memory.at(reinterpret_cast<std::uintptr_t>(p))[3] = std::byte{'d'};
  p[0] = 'h';
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(p[0], 'h');
  EXPECT_EQ(p[3], 'd');
  EXPECT_EQ(on_device(p), std::string("h\0\0d", 4));
}

TEST_F(Managed, WhatTheHostWroteDuringALaunchIsUnordered) {
  char* const p = allocate(4);
  cudaStream_t s = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&s, 1), cudaSuccess);
  launch({1, 1, 1}, {32, 1, 1}, 0, s);
  const Operation kernel = state_.operations.back();
  state_.operations.clear();
  p[0] = 'h';
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  ASSERT_EQ(state_.operations.size(), 1u);
  EXPECT_EQ(state_.operations[0].call, "the host");
  EXPECT_FALSE(state_.operations[0].knows(kernel.stream, kernel.time));
}

class Mapped : public Managed {
 protected:
  static constexpr unsigned kMapped = 2;  // cudaHostAllocMapped
  static char* on_device_of(void* host) {
    void* p = nullptr;
    EXPECT_EQ(cudaHostGetDevicePointer(&p, host, 0), cudaSuccess);
    return static_cast<char*>(p);
  }
};

TEST_F(Mapped, AllocatedAsSuchItHasOneAddress) {
  void* memory = nullptr;
  ASSERT_EQ(cudaHostAlloc(&memory, 4, kMapped), cudaSuccess);
  char* const p = static_cast<char*>(memory);
  EXPECT_EQ(on_device_of(p + 1), p + 1);
  std::ranges::copy(std::string_view("host"), p);
  launch({1, 1, 1}, {32, 1, 1});
  EXPECT_EQ(on_device(p), "host");
  set_on_device(p, 'd');
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(std::string(p, 4), "dddd");
  cudaPointerAttributes a{};
  EXPECT_EQ(cudaPointerGetAttributes(&a, p + 1), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_EQ(a.devicePointer, p + 1);
  EXPECT_EQ(a.hostPointer, p + 1);
  unsigned flags = 0;
  EXPECT_EQ(cudaHostGetFlags(&flags, p), cudaSuccess);
  EXPECT_EQ(flags, kMapped);
  EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(p), cudaSuccess);
  EXPECT_FALSE(state_.memory.contains(reinterpret_cast<std::uintptr_t>(p)));
}

// As page-locked memory: the host finds what was copied when cudaMemcpy returns.
TEST_F(Mapped, ABlockingCopyIsWaitedFor) {
  void *mapped = nullptr, *device = nullptr;
  ASSERT_EQ(cudaHostAlloc(&mapped, 4, kMapped), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&device, 4), cudaSuccess);
  ASSERT_EQ(cudaMemset(device, 'd', 4), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(mapped, device, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::string(static_cast<char*>(mapped), 4), "dddd");
}

TEST_F(Mapped, OtherPageLockedMemoryHasACopyOnTheDevice) {
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  char own[4] = {'m', 'i', 'n', 'e'};
  ASSERT_EQ(cudaHostRegister(own, 4, 0), cudaSuccess);
  std::memcpy(pinned, "lock", 4);
  for (char* const host : {static_cast<char*>(pinned), own}) {
    const std::string before(host, 4);
    char* const p = on_device_of(host);
    EXPECT_EQ(on_device_of(host + 2), p + 2) << "mapped once";
    launch({1, 1, 1}, {32, 1, 1});
    EXPECT_EQ(on_device(p), before);
    set_on_device(p, 'd');
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(std::string(host, 4), "dddd");
  }
  EXPECT_EQ(state_.memory.size(), 2u);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(own), cudaSuccess);
  EXPECT_TRUE(state_.memory.empty());
}

TEST_F(Mapped, ResetUnmaps) {
  void* p = nullptr;
  ASSERT_EQ(cudaHostAlloc(&p, 4, kMapped), cudaSuccess);
  char own[4] = {};
  ASSERT_EQ(cudaHostRegister(own, 4, 0), cudaSuccess);
  on_device_of(own);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_TRUE(state_.memory.empty());
  EXPECT_EQ(cudaFreeHost(p), cudaErrorInvalidValue);
  on_device_of(own);
  EXPECT_EQ(state_.memory.size(), 1u) << "mapped anew";
  EXPECT_EQ(cudaHostUnregister(own), cudaSuccess);
}

TEST_F(Mapped, Arguments) {
  void* p = nullptr;
  char pageable = 0;
  EXPECT_EQ(cudaHostGetDevicePointer(&p, &pageable, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostGetDevicePointer(nullptr, &pageable, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostAlloc(&p, 2 << 20, kMapped), cudaErrorMemoryAllocation);
  EXPECT_EQ(p, nullptr);
  ASSERT_EQ(cudaMallocHost(&p, 2 << 20), cudaSuccess);
  void* device = nullptr;
  EXPECT_EQ(cudaHostGetDevicePointer(&device, p, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostGetDevicePointer(&device, p, 0), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFreeHost(p), cudaSuccess);
}

TEST_F(Managed, CopiesTakeItForEitherMemory) {
  char* const p = allocate(4);
  char host[4] = {'a', 'b', 'c', 'd'};
  for (const cudaMemcpyKind kind :
       {cudaMemcpyHostToDevice, cudaMemcpyHostToHost, cudaMemcpyDefault})
    EXPECT_EQ(cudaMemcpy(p, host, 4, kind), cudaSuccess);
  EXPECT_EQ(std::string(p, 4), "abcd");
}

TEST_F(Managed, Arguments) {
  void* p = nullptr;
  EXPECT_EQ(cudaMallocManaged(&p, 0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocManaged(&p, 4, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocManaged(&p, 2 << 20, 1), cudaErrorMemoryAllocation);
  p = allocate(16);
  const cudaMemLocation device{cudaMemLocationTypeDevice, 0}, other{cudaMemLocationTypeDevice, 1},
      cpu{cudaMemLocationTypeHost, 0};
  EXPECT_EQ(cudaMemPrefetchAsync(p, 16, device, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync(p, 16, cpu, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync(p, 17, device, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPrefetchAsync(p, 16, other, 0, nullptr), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaMemAdvise(p, 16, static_cast<cudaMemoryAdvise>(7), device), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemAdvise(p, 16, cudaMemAdviseUnsetAccessedBy, device), cudaSuccess);
  EXPECT_EQ(cudaStreamAttachMemAsync(nullptr, p, 0, 1), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_EQ(cudaMemAdvise(p, 16, cudaMemAdviseUnsetAccessedBy, device), cudaErrorInvalidValue);
}

TEST_F(Managed, VariablesHaveTheirAddressBeforeTheHostAsks) {
  state_.variables["counter"] = 4;
  void* counter = nullptr;
  __cudaRegisterManagedVar(handle_, &counter, nullptr, "counter", 0, 4, 0, 0);
  EXPECT_EQ(counter, nullptr);
  EXPECT_EQ(__cudaInitModule(handle_), 1);
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(*static_cast<int*>(counter), 0);
  *static_cast<int*>(counter) = 3;
  launch({1, 1, 1}, {32, 1, 1});
  EXPECT_EQ(on_device(static_cast<char*>(counter))[0], 3);
}

}  // namespace
}  // namespace assay::sim::cuda
