#include "sim/memory/global_order.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace assay::sim {
namespace {

TEST(BlockClocks, JoinAtRandom) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    constexpr std::uint32_t kBlocks = 40;
    std::array<BlockClocks, 4> clocks;
    std::array<std::array<std::uint32_t, kBlocks>, 4> expected{};
    for (int step = 0; step < 100; ++step) {
      const std::size_t to = random() % 4, from = random() % 4;
      if (random() % 2 == 0) {
        const std::uint32_t block = random() % kBlocks, clock = 1 + random() % 3;
        clocks[to] = BlockClocks::join(clocks[to], BlockClocks::single(block, clock));
        expected[to][block] = std::max(expected[to][block], clock);
      } else {
        clocks[to] = BlockClocks::join(clocks[to], clocks[from]);
        for (std::uint32_t b = 0; b < kBlocks; ++b) {
          expected[to][b] = std::max(expected[to][b], expected[from][b]);
        }
      }
      for (std::uint32_t b = 0; b < kBlocks; ++b) ASSERT_EQ(clocks[to].of(b), expected[to][b]);
      ASSERT_EQ(clocks[to].of(kBlocks), 0u);
    }
  }
}

TEST(BlockClocks, NeighboursWithEqualClocksAreOneRun) {
  BlockClocks all;
  for (const std::uint32_t b : {3u, 1u, 0u, 2u, 4u}) {
    all = BlockClocks::join(all, BlockClocks::single(b, 1));
  }
  EXPECT_EQ(all.runs(), 1u);
  EXPECT_EQ(BlockClocks::join(all, BlockClocks::single(2, 2)).runs(), 3u);
}

TEST(SyncTable, CollectsWhatIsReleasedAtAnAddress) {
  SyncTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.find(64), nullptr);
  BlockOrder a, b;
  a.begin(1);
  b.begin(2);
  a.fence(3);
  b.fence(1);
  table.release(64, a.released());
  table.release(64, b.released());
  EXPECT_EQ(table.find(64)->of(1), 3u);
  EXPECT_EQ(table.find(64)->of(2), 1u);
  EXPECT_EQ(table.find(68), nullptr);
}

TEST(BlockOrder, KnowsWhatItAcquired) {
  BlockOrder a, b;
  a.begin(1);
  b.begin(2);
  EXPECT_TRUE(a.knows(1, 100));
  EXPECT_FALSE(a.knows(2, 0));
  EXPECT_FALSE(a.acquire(nullptr));
  b.fence(2);
  EXPECT_TRUE(a.acquire(b.released()));
  EXPECT_FALSE(a.acquire(b.released()));
  EXPECT_TRUE(a.knows(2, 1));
  EXPECT_FALSE(a.knows(2, 2));
  a.begin(1);
  EXPECT_FALSE(a.knows(2, 1));
}

}  // namespace
}  // namespace assay::sim
