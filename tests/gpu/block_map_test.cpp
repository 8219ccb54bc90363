#include "gpu/block_map.h"

#include <gtest/gtest.h>

#include <map>

#include "assay/random.h"

namespace assay::gpu {
namespace {

constexpr std::uint64_t kBegin = 0x2000'0000'0000, kRange = 1 << 20, kCapacity = 1 << 19;

TEST(BlockMap, BlocksLieInTheRangeAndDoNotTouch) {
  BlockMap map(kBegin, kRange, kCapacity);
  const std::uint64_t a = map.allocate(1), b = map.allocate(1000), c = map.allocate(512);
  EXPECT_EQ(a, kBegin);
  EXPECT_GE(b, a + 1 + BlockMap::kGap);
  EXPECT_GE(c, b + 1000 + BlockMap::kGap);
  for (const std::uint64_t address : {a, b, c}) EXPECT_EQ(address % BlockMap::kAlignment, 0u);
}

TEST(BlockMap, WhatWasFreedIsGivenAgain) {
  BlockMap map(kBegin, kRange, kCapacity);
  const std::uint64_t a = map.allocate(4096), b = map.allocate(4096);
  EXPECT_TRUE(map.free(a));
  EXPECT_FALSE(map.free(a));
  EXPECT_FALSE(map.free(b + 512)) << "no block begins there";
  EXPECT_EQ(map.allocate(4096), a);
}

TEST(BlockMap, NothingIsGivenBeyondTheCapacityOrTheRange) {
  BlockMap by_capacity(kBegin, kRange, kCapacity);
  EXPECT_EQ(by_capacity.allocate(kCapacity + 1), 0u);
  EXPECT_NE(by_capacity.allocate(kCapacity), 0u);
  EXPECT_EQ(by_capacity.allocate(1), 0u);
  EXPECT_EQ(by_capacity.allocate(0), 0u);
  BlockMap by_range(kBegin, 4096, kCapacity);
  EXPECT_EQ(by_range.allocate(4097), 0u);
  EXPECT_NE(by_range.allocate(4096), 0u);
}

TEST(BlockMap, RangesAreThoseWithinOneBlock) {
  BlockMap map(kBegin, kRange, kCapacity);
  const std::uint64_t a = map.allocate(100);
  map.allocate(100);
  EXPECT_TRUE(map.contains(a, 100));
  EXPECT_TRUE(map.contains(a + 99, 1));
  EXPECT_FALSE(map.contains(a, 101));
  EXPECT_FALSE(map.contains(a + 100, 1));
  EXPECT_FALSE(map.contains(a - 1, 1));
  EXPECT_FALSE(map.contains(a + 1, ~std::uint64_t{0}));
  EXPECT_EQ(map.around(a + 50).address, a);
  EXPECT_EQ(map.around(a + 100).bytes, 0u);
}

TEST(BlockMap, TheHighWaterIsThatSinceItWasReset) {
  BlockMap map(kBegin, kRange, kCapacity);
  const std::uint64_t a = map.allocate(1000);
  map.allocate(10);
  map.free(a);
  EXPECT_EQ(map.live_bytes(), 10u);
  EXPECT_EQ(map.high_water(), 1010u);
  map.reset_high_water();
  EXPECT_EQ(map.high_water(), 10u);
}

// Compared with a map that is checked for every block.
TEST(BlockMap, DrawnBlocksNeverOverlap) {
  Random random(7);
  BlockMap map(kBegin, kRange, kCapacity);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int step = 0; step < 5000; ++step) {
    if (!live.empty() && random.below(2) == 0) {
      const auto block = std::next(live.begin(), random.below(static_cast<int>(live.size())));
      ASSERT_TRUE(map.free(block->first));
      live.erase(block);
      continue;
    }
    const auto bytes = static_cast<std::uint64_t>(1 + random.below(40'000));
    const std::uint64_t at = map.allocate(bytes);
    if (at == 0) continue;
    ASSERT_GE(at, kBegin);
    ASSERT_LE(at + bytes, kBegin + kRange);
    for (const auto& [begin, size] : live)
      ASSERT_TRUE(at + bytes + BlockMap::kGap <= begin || begin + size + BlockMap::kGap <= at);
    live[at] = bytes;
  }
  std::uint64_t sum = 0;
  for (const auto& [begin, size] : live) sum += size;
  EXPECT_EQ(map.live_bytes(), sum);
}

}  // namespace
}  // namespace assay::gpu
