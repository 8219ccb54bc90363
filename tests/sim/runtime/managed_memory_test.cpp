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
