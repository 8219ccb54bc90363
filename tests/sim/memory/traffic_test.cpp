#include "sim/memory/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "sim/memory/distinct.h"
#include "sim/memory/lane_shapes.h"
#include "sim/memory/shared_entry.h"
#include "sim/memory/warp_support.h"

namespace assay::sim {
namespace {

constexpr AccessKind kLoad = AccessKind::load;

std::uint32_t sectors_of(const WarpAccess& a) { return sectors(a, find_pattern(a)); }
BankPasses passes_of(const WarpAccess& a) { return bank_passes(a, find_pattern(a)); }

// The rules of sim/counters.h applied literally, byte by byte.
std::uint32_t plain_sectors(const WarpAccess& a) {
  std::set<std::uint64_t> result;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (((a.mask >> lane) & 1u) == 0) continue;
    for (unsigned b = 0; b < a.bytes; ++b) result.insert((a.address[lane] + b) / 32);
  }
  return static_cast<std::uint32_t>(result.size());
}

BankPasses plain_passes(const WarpAccess& a) {
  BankPasses result;
  const unsigned group = a.bytes <= 4 ? 32 : a.bytes == 8 ? 16 : a.bytes == 16 ? 8 : 4;
  for (unsigned begin = 0; begin < kLanes; begin += group) {
    std::map<std::uint64_t, std::set<std::uint64_t>> words_of_bank;
    for (unsigned lane = begin; lane < begin + group; ++lane) {
      if (((a.mask >> lane) & 1u) == 0) continue;
      for (unsigned b = 0; b < a.bytes; ++b) {
        const std::uint64_t word = (a.address[lane] + b) / 4;
        words_of_bank[word % 32].insert(word);
      }
    }
    std::size_t most = 0;
    for (const auto& [bank, words] : words_of_bank) most = std::max(most, words.size());
    result.passes += static_cast<std::uint32_t>(most);
    if (most != 0) result.replays += static_cast<std::uint32_t>(most - 1);
  }
  return result;
}

TEST(Traffic, SectorsCountedByHand) {
  // 128 bytes, aligned to 128, aligned to 32, and not aligned.
  EXPECT_EQ(sectors_of(row(kLoad, 4096)), 4u);
  EXPECT_EQ(sectors_of(row(kLoad, 4096 + 32)), 4u);
  EXPECT_EQ(sectors_of(row(kLoad, 4096 + 4)), 5u);
  EXPECT_EQ(sectors_of(row(kLoad, 4096, 2)), 2u);
  EXPECT_EQ(sectors_of(row(kLoad, 4096, 8)), 8u);
  EXPECT_EQ(sectors_of(row(kLoad, 4096, 16)), 16u);
  EXPECT_EQ(sectors_of(strided(kLoad, 4, 4096, 0)), 1u);
  EXPECT_EQ(sectors_of(strided(kLoad, 4, 4096, 8)), 8u);
  EXPECT_EQ(sectors_of(strided(kLoad, 4, 4096, 16)), 16u);
  EXPECT_EQ(sectors_of(strided(kLoad, 4, 4096, 32)), 32u);
  EXPECT_EQ(sectors_of(strided(kLoad, 4, 4096, 128)), 32u);
  EXPECT_EQ(sectors_of(row(kLoad, 4096).only(0xff)), 1u);
  EXPECT_EQ(sectors_of(row(kLoad, 4096).only(0x80000001)), 2u);
}

TEST(Traffic, BankConflictsCountedByHand) {
  const auto stride = [](std::uint64_t words) {
    return passes_of(strided(kLoad, 4, 0, 4 * words));
  };
  EXPECT_EQ(stride(0), (BankPasses{1, 0}));
  EXPECT_EQ(stride(1), (BankPasses{1, 0}));
  EXPECT_EQ(stride(2), (BankPasses{2, 1}));
  EXPECT_EQ(stride(4), (BankPasses{4, 3}));
  EXPECT_EQ(stride(8), (BankPasses{8, 7}));
  EXPECT_EQ(stride(32), (BankPasses{32, 31}));
  EXPECT_EQ(stride(33), (BankPasses{1, 0}));
  // Half and quarter warps are handled separately.
  EXPECT_EQ(passes_of(row(kLoad, 0, 8)), (BankPasses{2, 0}));
  EXPECT_EQ(passes_of(row(kLoad, 0, 16)), (BankPasses{4, 0}));
  EXPECT_EQ(passes_of(strided(kLoad, 8, 0, 16)), (BankPasses{4, 2}));
  EXPECT_EQ(passes_of(strided(kLoad, 16, 0, 32)), (BankPasses{8, 4}));
  EXPECT_EQ(passes_of(strided(kLoad, 16, 0, 0)), (BankPasses{4, 0}));
  // An inactive half warp costs nothing.
  EXPECT_EQ(passes_of(row(kLoad, 0, 8).only(0xffff)), (BankPasses{1, 0}));
  // Two bytes of one word count as one word.
  EXPECT_EQ(passes_of(row(kLoad, 0, 2)), (BankPasses{1, 0}));
  EXPECT_EQ(passes_of(strided(kLoad, 2, 0, 66)), plain_passes(strided(kLoad, 2, 0, 66)));
  // Two distinct words in one bank, each read by half of the lanes.
  EXPECT_EQ(passes_of(lanes(kLoad, 4, [](unsigned i) { return i % 2 * 128; })), (BankPasses{2, 1}));
}

TEST(Traffic, AgreesWithTheRulesOnAnyPattern) {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t bytes = 1u << below(6);
    const std::uint64_t span = std::uint64_t{1} << below(12), origin = bytes * below(100);
    const std::uint64_t stride = below(70);
    const int shape = static_cast<int>(below(4));
    Lanes a = lanes(kLoad, bytes, [&](unsigned lane) {
      std::uint64_t element = below(span);
      if (shape == 1) element = lane * stride;
      if (shape == 2) element = (31 - lane) * stride;
      if (shape == 3) element = lane / (1 + stride % 8);
      return origin + bytes * element;
    });
    if (below(2) == 0) a.mask = static_cast<std::uint32_t>(random() | 1);
    if (below(4) == 0) a.mask &= (1u << below(32)) - 1;
    if (a.mask == 0) a.mask = 1;
    ASSERT_EQ(sectors_of(a), plain_sectors(a)) << "case " << i;
    ASSERT_EQ(passes_of(a), plain_passes(a)) << "case " << i;
  }
}

TEST(LaneShapes, SayWhatALookAtEachLaneSays) {
  std::mt19937 random(3);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  LaneShapes shapes;
  int found = 0;
  for (int kernel = 0; kernel < 300; ++kernel) {
    std::vector<TileShape> tiles(1 + below(6));
    for (TileShape& t : tiles) t = random_tile(below, 1, 32, 70);
    for (int i = 0; i < 60; ++i) {
      const TileShape& tile = tiles[below(static_cast<std::uint32_t>(tiles.size()))];
      std::uint64_t origin = std::uint64_t{tile.bytes} * below(200);
      if (below(10) == 0) origin += below(tile.bytes);
      const AccessKind kind = below(3) == 0 ? AccessKind::store : kLoad;
      Lanes a = tile.at(kind, origin);
      if (below(4) == 0) std::ranges::reverse(a.address);
      if (below(10) == 0) a.address[below(kLanes)] = std::uint64_t{tile.bytes} * below(200);
      const std::uint64_t back = below(20) == 0 ? below(400) * 4 : 0;  // below 0: wraps around
      for (std::uint64_t& address : a.address) address -= back;
      const LaneShape* const shape = shapes.find(a);
      if (shape == nullptr) continue;
      ++found;
      const LanePattern p = find_pattern(a), q = shape->at(a.address[0]);
      ASSERT_TRUE(p.first == q.first && p.lanes == q.lanes && p.low == q.low && p.high == q.high &&
                  p.aligned == q.aligned && p.contiguous == q.contiguous &&
                  p.uniform == q.uniform && p.distinct == q.distinct && p.ascending == q.ascending)
          << "kernel " << kernel << ", access " << i;
      ASSERT_EQ(shape->passes, plain_passes(a)) << "kernel " << kernel << ", access " << i;
      std::set<std::uint64_t> addresses;
      for (std::uint32_t n = 0; n < shape->addresses; ++n) {
        const std::uint64_t address = q.low + shape->offset[n];
        const std::uint32_t lanes_there = lanes_at(a, kAllLanes, address);
        ASSERT_NE(lanes_there, 0u);
        EXPECT_EQ(shared_entry::first_of(shape->lanes[n]), std::countr_zero(lanes_there));
        EXPECT_EQ(shared_entry::last_of(shape->lanes[n]), last_lane(lanes_there));
        addresses.insert(address);
      }
      EXPECT_EQ(addresses, std::set(a.address.begin(), a.address.end()));
      EXPECT_EQ(addresses.size(), shape->addresses);
    }
  }
  EXPECT_GT(found, 5000);
}

TEST(Traffic, DistinctValues) {
  for (const std::uint64_t scale : {1u, 1u << 20, ~0u}) {
    const auto count = [&](auto&& f) {
      std::uint64_t values[kLanes], highest = 0;
      for (unsigned i = 0; i < kLanes; ++i) {
        values[i] = f(i) * scale;
        highest = std::max(highest, values[i]);
      }
      return count_distinct(values, 0, highest);
    };
    EXPECT_EQ(count([](unsigned) { return 0; }), 1u);
    EXPECT_EQ(count([](unsigned i) { return i * 7 % 32; }), 32u);
    EXPECT_EQ(count([](unsigned i) { return i % 5; }), 5u);
  }
}

TEST(Traffic, PatternsAreTold) {
  const auto pattern = [](const Lanes& a) { return find_pattern(a); };
  EXPECT_TRUE(pattern(row(kLoad, 64)).contiguous);
  EXPECT_TRUE(pattern(row(kLoad, 64).only(0xff00)).contiguous);
  EXPECT_EQ(pattern(row(kLoad, 64).only(0xff00)).low, 64u + 32);
  EXPECT_EQ(pattern(row(kLoad, 64).only(0xff00)).high, 64u + 60);
  EXPECT_FALSE(pattern(row(kLoad, 64).only(0xf0f0)).contiguous);
  EXPECT_TRUE(pattern(strided(kLoad, 4, 64, 0).only(0xf0f0)).uniform);
  EXPECT_FALSE(pattern(strided(kLoad, 4, 62, 4)).aligned);
  EXPECT_FALSE(pattern(lanes(kLoad, 4, [](unsigned i) { return i == 7 ? 2u : 0u; })).aligned);
  EXPECT_TRUE(
      pattern(lanes(kLoad, 4, [](unsigned i) { return i == 7 ? 2u : 0u; }).only(0xf)).aligned);
  EXPECT_TRUE(pattern(lanes(kLoad, 4, [](unsigned i) { return i * i * 4; })).ascending);
  EXPECT_FALSE(pattern(lanes(kLoad, 4, [](unsigned i) { return i / 2 * 4; })).ascending);
}

}  // namespace
}  // namespace assay::sim
