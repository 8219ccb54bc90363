#include "sim/memory/global_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "sim/memory/bits.h"
#include "sim/memory/footprint.h"
#include "sim/memory/race_shadow.h"

namespace assay::sim {
namespace {

TEST(GlobalMemory, AllocationsAreAlignedAndApart) {
  GlobalMemory memory(1 << 20);
  std::uint64_t end = 0;
  for (const std::uint64_t bytes : {1u, 255u, 256u, 257u, 10000u}) {
    const std::uint64_t a = memory.allocate(bytes).value();
    EXPECT_EQ(a % 256, 0u);
    EXPECT_TRUE(kGlobalRange.contains(a));
    EXPECT_TRUE(end == 0 || a >= end + 256);
    end = a + bytes;
  }
}

TEST(GlobalMemory, AlignsVariablesAsTheyAsk) {
  GlobalMemory memory(1 << 20);
  for (const std::uint64_t align : {1, 512, 4, 4096}) {
    const std::uint64_t a = memory.allocate(4, "v", false, align).value();
    EXPECT_EQ(a % std::max<std::uint64_t>(align, 256), 0u) << align;
  }
}

TEST(GlobalMemory, FindsLiveAndFreedAllocations) {
  GlobalMemory memory(1 << 20);
  const std::uint64_t a = memory.allocate(100, "table", true).value();
  const std::uint64_t b = memory.allocate(50).value();
  ASSERT_NE(memory.find(a + 99), nullptr);
  EXPECT_EQ(memory.find(a + 99)->name, "table");
  EXPECT_TRUE(memory.find(a)->read_only);
  EXPECT_EQ(memory.find(a + 100), nullptr);
  EXPECT_EQ(memory.find(a - 1), nullptr);
  EXPECT_TRUE(memory.free(b));
  ASSERT_NE(memory.find(b + 1), nullptr);
  EXPECT_FALSE(memory.find(b + 1)->live);
}

TEST(GlobalMemory, FreesOnlyBeginsOfLiveAllocations) {
  GlobalMemory memory(1 << 20);
  const std::uint64_t a = memory.allocate(512).value();
  EXPECT_FALSE(memory.free(a + 256));
  EXPECT_FALSE(memory.free(0));
  EXPECT_TRUE(memory.free(a));
  EXPECT_FALSE(memory.free(a));
}

TEST(GlobalMemory, NearestLiveAllocation) {
  GlobalMemory memory(1 << 20);
  EXPECT_EQ(memory.nearest(kGlobalRange.begin), nullptr);
  const std::uint64_t a = memory.allocate(256).value();
  const std::uint64_t b = memory.allocate(256).value();
  const std::uint64_t c = memory.allocate(256).value();
  EXPECT_EQ(memory.nearest(a + 300)->address, a);
  EXPECT_EQ(memory.nearest(b - 4)->address, b);
  EXPECT_EQ(memory.nearest(kGlobalRange.begin)->address, a);
  EXPECT_EQ(memory.nearest(c + (1 << 19))->address, c);
  memory.free(b);
  EXPECT_EQ(memory.nearest(b + 4)->address, a);
  EXPECT_EQ(memory.nearest(b + 250)->address, c);
}

// Compared with a bitmap of bools, for ranges at all distances from word boundaries, including
// overlapping ones.
TEST(GlobalMemory, CopiesCarryWhatIsInitialised) {
  GlobalMemory memory(1 << 20);
  constexpr std::uint64_t kBytes = 600;
  const std::uint64_t a = memory.allocate(kBytes).value();
  std::uint64_t* const bits = memory.initialised_bits();
  const auto is_set = [&](std::uint64_t i) {
    const std::uint64_t at = a + i - kGlobalRange.begin;
    return ((bits[at / 64] >> at % 64) & 1u) != 0;
  };
  std::vector<bool> expected(kBytes);
  std::uint32_t random = 1;
  const auto draw = [&](std::uint64_t n) {
    random = random * 1664525u + 1013904223u;
    return std::uint64_t{random >> 8} % n;
  };
  for (int repeat = 0; repeat < 2000; ++repeat) {
    if (repeat % 8 == 0) {
      const std::uint64_t at = draw(kBytes), n = draw(std::min<std::uint64_t>(90, kBytes - at)) + 1;
      memory.mark_initialised(a + at, n);
      for (std::uint64_t i = at; i < at + n; ++i) expected[i] = true;
    }
    const std::uint64_t n = draw(repeat % 2 == 0 ? 300 : 20) + 1;
    const std::uint64_t to = draw(kBytes - n), from = draw(kBytes - n);
    memory.copy_initialised(a + to, a + from, n);
    const std::vector<bool> before = expected;
    for (std::uint64_t i = 0; i < n; ++i) expected[to + i] = before[from + i];
    for (std::uint64_t i = 0; i < kBytes; ++i) {
      ASSERT_EQ(is_set(i), expected[i]) << "copy " << repeat << ", byte " << i;
    }
  }
}

TEST(GlobalMemory, CapacityAndHighWater) {
  GlobalMemory memory(10000);
  EXPECT_EQ(memory.capacity(), 10000u);
  const std::uint64_t a = memory.allocate(6000).value();
  EXPECT_FALSE(memory.allocate(4001));
  memory.allocate(3000).value();
  EXPECT_EQ(memory.live_bytes(), 9000u);
  memory.free(a);
  EXPECT_EQ(memory.live_bytes(), 3000u);
  EXPECT_EQ(memory.high_water(), 9000u);
  memory.reset_high_water();
  EXPECT_EQ(memory.high_water(), 3000u);
  EXPECT_TRUE(memory.allocate(7000));
  EXPECT_EQ(memory.high_water(), 10000u);
  EXPECT_THROW((void)memory.allocate(0), std::invalid_argument);
}

TEST(GlobalMemory, AFreedRangeIsUsedAgainLast) {
  GlobalMemory memory(1 << 20);  // the addresses last for 64 MiB
  constexpr std::uint64_t kBytes = 1 << 18;
  const std::uint64_t kept = memory.allocate(kBytes).value();
  const std::uint64_t first = memory.allocate(kBytes).value();
  memory.free(first);
  std::uint64_t last = first;
  int count = 0;
  for (;; ++count) {
    const std::uint64_t next = memory.allocate(kBytes).value();
    memory.free(next);
    if (next < last) {
      EXPECT_EQ(next, first) << "and not where `kept` lies";
      break;
    }
    last = next;
  }
  EXPECT_GT(count, 200);
  EXPECT_TRUE(memory.find(kept)->live);
  EXPECT_FALSE(memory.find(last)->live);
}

TEST(GlobalMemory, ForgetsFreedAllocationsWhoseRangeIsReused) {
  GlobalMemory memory(std::uint64_t{1} << 25);  // 128 MiB of addresses
  const std::uint64_t small = memory.allocate(1000).value();
  memory.free(small);
  for (int i = 0; i < 4; ++i) memory.free(memory.allocate(1 << 25).value());
  const Allocation* const there = memory.find(small);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(there->bytes, 1u << 25);
}

TEST(GlobalMemory, DataOfLiveAllocationsOnly) {
  GlobalMemory memory(1 << 20);
  const std::uint64_t a = memory.allocate(100).value();
  std::byte* const p = memory.data(a, 100);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(memory.data(a + 60, 40), p + 60);
  EXPECT_EQ(memory.data(a + 60, 41), nullptr);
  EXPECT_EQ(memory.data(a - 1, 1), nullptr);
  EXPECT_EQ(memory.store() + (a - kGlobalRange.begin), p);
  std::memset(p, 7, 100);
  EXPECT_EQ(memory.find(a)->data[99], std::byte{7});
  memory.free(a);
  EXPECT_EQ(memory.data(a, 1), nullptr);
}

TEST(GlobalMemory, ReusedMemoryIsZeroAndUninitialised) {
  GlobalMemory memory(1 << 25);
  for (int round = 0; round < 6; ++round) {
    const std::uint64_t bytes = (1 << 25) - 1000 + round;
    const std::uint64_t a = memory.allocate(bytes).value();
    const Allocation* const found = memory.find(a);
    for (const std::uint64_t i : {std::uint64_t{0}, bytes / 2, bytes - 1}) {
      ASSERT_EQ(found->data[i], std::byte{0}) << i;
      ASSERT_EQ(found->initialised[i / 64], 0u) << i;
      found->data[i] = std::byte{1};
    }
    memory.mark_initialised(a, bytes);
    memory.free(a);
  }
}

TEST(GlobalMemory, MarksBytes) {
  GlobalMemory memory(1 << 20);
  const std::uint64_t a = memory.allocate(1000).value();
  memory.mark_initialised(a + 3, 2);
  memory.mark_initialised(a + 60, 200);
  std::uint64_t* const bits = memory.find(a)->initialised;
  EXPECT_EQ(bits[0], 0xf000000000000018u);
  EXPECT_EQ(bits[1], ~std::uint64_t{0});
  EXPECT_EQ(bits[4], 0xfu);
  EXPECT_TRUE(all_bits(bits, 60, 200));
  EXPECT_FALSE(all_bits(bits, 59, 200));
  EXPECT_FALSE(all_bits(bits, 60, 201));
}

TEST(GlobalMemory, SeveralInOneProcess) {
  GlobalMemory one(1 << 20), two(1 << 20);
  const std::uint64_t a = one.allocate(64).value(), b = two.allocate(64).value();
  EXPECT_EQ(a, b);
  one.data(a, 1)[0] = std::byte{1};
  EXPECT_EQ(two.data(b, 1)[0], std::byte{0});
}

TEST(GlobalMemory, HostDereferenceFaults) {
  GlobalMemory memory(1 << 20);
  const std::uint64_t a = memory.allocate(64).value();
  EXPECT_EXIT({ *reinterpret_cast<volatile char*>(a) = 1; }, ::testing::KilledBySignal(SIGSEGV),
              "");
}

TEST(GlobalMemory, SaysWhichRangeIsTaken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child must not have reserved it
  EXPECT_EXIT(
      {
        void* const taken = mmap(reinterpret_cast<void*>(kGlobalRange.begin + 8192), 4096,
                                 PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (taken == MAP_FAILED) std::_Exit(4);
        try {
          GlobalMemory memory(1 << 20);
        } catch (const std::runtime_error& e) {
          std::fputs(e.what(), stderr);
          std::_Exit(3);
        }
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(3), "0x200000000000");
}

// How many bytes of [begin, begin + bytes) are in memory; begin is page-aligned.
std::uint64_t resident(void* begin, std::uint64_t bytes) {
  constexpr std::uint64_t kPage = 4096;
  std::vector<unsigned char> pages((bytes + kPage - 1) / kPage);
  EXPECT_EQ(mincore(begin, bytes, pages.data()), 0);
  return kPage * static_cast<std::uint64_t>(
                     std::ranges::count_if(pages, [](unsigned char p) { return (p & 1u) != 0; }));
}

// A process that lives for many runs takes new addresses for each run.
TEST(GlobalMemory, ShadowsOfManySmallBlocksGoBackToTheSystem) {
  constexpr std::uint64_t kCapacity = 64 << 20, kBlock = 4000, kBlocks = 15'000;
  GlobalMemory memory(kCapacity);
  const std::uint64_t constant = memory.allocate(kBlock).value();
  std::uint32_t* const values = memory.race_shadow().values();
  const auto touch = [&](std::uint64_t address) {
    std::memset(values + (address - kGlobalRange.begin) / sizeof *values, 1, kBlock);
    const std::array<std::uint64_t, 32> addresses = {address};
    WarpAccess access;
    access.kind = AccessKind::store;
    access.mask = 1;
    access.address = addresses.data();
    memory.footprint().add(access, find_pattern(access));
  };
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t block = memory.allocate(kBlock).value();
    touch(constant);
    touch(block);
    std::vector<std::uint64_t> written;
    memory.footprint().take([&](const Footprint::Run& r) { written.push_back(r.begin); });
    ASSERT_EQ(written, (std::vector{constant, block}));
    ASSERT_TRUE(memory.free(block));
  }
  // One clearing per 16 MiB; a huge page may straddle each boundary.
  EXPECT_LT(resident(values, kBlocks * (kBlock + 512)), std::uint64_t{20} << 20);
}

// Blocks smaller than a page, next to one that stays.
TEST(GlobalMemory, SmallBlocksLeaveNoPagesBehind) {
  constexpr std::uint64_t kBlock = 1000, kBlocks = 2000, kSlot = 1024 + 256;
  GlobalMemory memory(16 << 20);
  const auto make = [&] {
    const std::uint64_t a = memory.allocate(kBlock).value();
    std::memset(memory.data(a, kBlock), 7, kBlock);
    memory.mark_initialised(a, kBlock);
    return a;
  };
  std::vector<std::uint64_t> blocks(kBlocks);
  for (auto& block : blocks) block = make();
  const std::uint64_t kept = blocks[kBlocks / 2];
  for (const std::uint64_t block : blocks)
    if (block != kept) memory.free(block);
  EXPECT_EQ(resident(memory.store(), kBlocks * kSlot), 4096u);
  EXPECT_EQ(resident(memory.initialised_bits(), kBlocks * kSlot / 8), 4096u);
  EXPECT_TRUE(std::ranges::all_of(std::span(memory.data(kept, kBlock), kBlock),
                                  [](std::byte b) { return b == std::byte{7}; }));
  EXPECT_FALSE(memory.holds_undefined(kept, kBlock, true));
  EXPECT_EQ(memory.store()[blocks.front() - kGlobalRange.begin], std::byte{0});
}

}  // namespace
}  // namespace assay::sim
