// Bounds, alignment, initialisation and how findings are merged. Other tests cover races.
#include "sim/memory/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>

#include "sim/memory/warp_support.h"

namespace assay::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr AccessKind kLoad = AccessKind::load, kStore = AccessKind::store;

class Checker : public ::testing::Test {
 protected:
  GlobalMemory memory{1 << 20};

  std::uint64_t initialised(std::uint64_t bytes) {
    const std::uint64_t a = memory.allocate(bytes).value();
    memory.mark_initialised(a, bytes);
    return a;
  }
  struct Outcome {
    bool allowed = true;
    std::uint32_t undefined = 0;  // lanes that read undefined bytes
    std::vector<RawFinding> findings;
    Counters counters;
  };
  // One block of one warp.
  template <class F>
  Outcome run(F&& body, std::uint32_t shared_bytes = 1024) {
    LaunchChecker launch(memory, 1, {});
    BlockChecker block(launch, shared_bytes, 1);
    block.begin_block(0);
    Outcome result;
    result.allowed = body(block);
    result.undefined = block.undefined;
    result.findings = launch.findings();
    result.counters = block.counters();
    return result;
  }
  Outcome global(const Lanes& a) {
    return run([&](BlockChecker& b) { return b.global(a); });
  }
  void expect_refused(const Outcome& o, FindingKind kind, std::uint32_t thread,
                      std::uint64_t address) {
    EXPECT_FALSE(o.allowed);
    ASSERT_EQ(o.findings.size(), 1u);
    EXPECT_EQ(o.findings[0].kind, kind);
    EXPECT_EQ(o.findings[0].thread, thread);
    EXPECT_EQ(o.findings[0].address, address);
    EXPECT_EQ(o.counters, Counters{});
  }
};

TEST_F(Checker, GlobalBounds) {
  const std::uint64_t a = initialised(128);
  EXPECT_TRUE(global(row(kLoad, a)).allowed);
  expect_refused(global(row(kLoad, a + 4).at(7)), FindingKind::out_of_bounds, 31, a + 128);
  expect_refused(global(row(kLoad, a - 4)), FindingKind::out_of_bounds, 0, a - 4);
  EXPECT_TRUE(global(row(kLoad, a + 4).only(kAllLanes >> 1)).allowed);
  expect_refused(global(one(kStore, 0, 5)), FindingKind::out_of_bounds, 5, 0);
  expect_refused(global(one(kLoad, ~std::uint64_t{3}, 5)), FindingKind::out_of_bounds, 5,
                 ~std::uint64_t{3});
  expect_refused(global(one(kLoad, a + 120, 1, 16)), FindingKind::misaligned, 1, a + 120);
  // The last element, except its last bytes, lies in bounds.
  const std::uint64_t odd = initialised(126);
  expect_refused(global(row(kLoad, odd)), FindingKind::out_of_bounds, 31, odd + 124);
}

TEST_F(Checker, LanesInDifferentAllocations) {
  const std::uint64_t a = initialised(64), b = initialised(64);
  const auto between = [&](std::uint64_t offset) {
    return lanes(kLoad, 4, [=](unsigned i) { return (i % 2 == 0 ? a : b) + i / 2 * 4 + offset; });
  };
  EXPECT_TRUE(global(between(0)).allowed);
  expect_refused(global(between(4)), FindingKind::out_of_bounds, 30, a + 64);
}

TEST_F(Checker, Alignment) {
  const std::uint64_t a = initialised(4096);
  for (const std::uint32_t bytes : {2u, 4u, 8u, 16u, 32u}) {
    EXPECT_TRUE(global(row(kLoad, a, bytes)).allowed);
    expect_refused(global(row(kLoad, a + bytes / 2, bytes)), FindingKind::misaligned, 0,
                   a + bytes / 2);
    expect_refused(
        global(lanes(kLoad, bytes, [=](unsigned i) { return a + i * bytes + (i == 9 ? 1 : 0); })),
        FindingKind::misaligned, 9, a + 9 * bytes + 1);
  }
  EXPECT_TRUE(global(row(kLoad, a + 3, 1)).allowed);
}

TEST_F(Checker, UseAfterFreeAndReadOnly) {
  const std::uint64_t a = initialised(256);
  memory.free(a);
  expect_refused(global(row(kLoad, a)), FindingKind::use_after_free, 0, a);
  const std::uint64_t table = memory.allocate(256, "table", true).value();
  memory.mark_initialised(table, 256);
  const Outcome read = global(row(kLoad, table));
  EXPECT_TRUE(read.allowed);
  EXPECT_EQ(read.counters.constant_load_bytes, 128u);
  EXPECT_EQ(read.counters.global_load_bytes, 0u);
  expect_refused(global(one(kStore, table + 8, 3)), FindingKind::read_only, 3, table + 8);
  expect_refused(global(one(AccessKind::atomic, table, 3)), FindingKind::read_only, 3, table);
}

TEST_F(Checker, SharedAndLocalBounds) {
  const auto shared = [&](const Lanes& a) {
    return run([&](BlockChecker& b) { return b.shared(a); }, 128);
  };
  EXPECT_TRUE(shared(row(kStore, 0)).allowed);
  expect_refused(shared(row(kStore, 4)), FindingKind::out_of_bounds, 31, 128);
  expect_refused(shared(one(kStore, ~std::uint64_t{3}, 2)), FindingKind::out_of_bounds, 2,
                 ~std::uint64_t{3});
  expect_refused(shared(row(kStore, 2)), FindingKind::misaligned, 0, 2);
  EXPECT_TRUE(shared(row(kStore, 2)).findings[0].shared);
  const auto local = [&](const Lanes& a) {
    return run([&](BlockChecker& b) { return b.local(a, 64); });
  };
  EXPECT_EQ(local(strided(kStore, 8, 56, 0)).counters.local_store_bytes, 256u);
  EXPECT_EQ(local(strided(kLoad, 8, 56, 0).only(3)).counters.local_load_bytes, 16u);
  expect_refused(local(strided(kLoad, 8, 64, 0)), FindingKind::out_of_bounds, 0, 64);
  expect_refused(local(strided(kLoad, 8, 60, 0)), FindingKind::misaligned, 0, 60);
}

TEST_F(Checker, HostMemoryOfAnAccess) {
  const std::uint64_t a = initialised(128);
  run([&](BlockChecker& b) {
    EXPECT_TRUE(b.global(row(kStore, a)));
    EXPECT_EQ(b.base() + (a + 5 - b.base_address()), memory.data(a + 5, 1));
    return true;
  });
}

TEST_F(Checker, UninitialisedGlobalBytes) {
  const std::uint64_t a = memory.allocate(1024).value();
  memory.mark_initialised(a, 130);
  EXPECT_THAT(global(row(kLoad, a)).findings, IsEmpty());
  EXPECT_THAT(global(row(kLoad, a + 2, 2)).findings, IsEmpty());
  EXPECT_THAT(global(one(kLoad, a + 129, 0, 1)).findings, IsEmpty());
  // One byte of one lane.
  const Outcome o = global(row(kLoad, a + 3, 1).only(0xf0).at(4));
  EXPECT_THAT(o.findings, IsEmpty());
  const Outcome half = global(row(kLoad, a + 4).at(9));
  EXPECT_TRUE(half.allowed);
  EXPECT_THAT(half.findings, IsEmpty());
  EXPECT_EQ(half.undefined, 1u << 31);
  EXPECT_EQ(global(one(kLoad, a + 130, 7, 1)).undefined, 1u << 7);
  // A computation with undefined values is a fault at once.
  const Outcome sum = global(one(AccessKind::atomic, a + 256, 7).at(9));
  EXPECT_EQ(sum.undefined, 0u);
  ASSERT_EQ(sum.findings.size(), 1u);
  EXPECT_EQ(sum.findings[0].kind, FindingKind::uninitialised);
  EXPECT_EQ(sum.findings[0].thread, 7u);
  EXPECT_EQ(sum.findings[0].pc, 9u);
  EXPECT_EQ(sum.findings[0].address, a + 256);
  // For an exchange, the first lane of each address.
  const Outcome exchange =
      global(lanes(AccessKind::exchange, 4, [=](unsigned i) { return a + 400 + i % 4 / 2 * 4; }));
  EXPECT_THAT(exchange.findings, IsEmpty());
  EXPECT_EQ(exchange.undefined, 5u);
  EXPECT_THAT(global(one(AccessKind::atomic_store, a + 300, 7)).findings, IsEmpty());
}

TEST_F(Checker, StoresInitialiseTheirBytesOnly) {
  const std::uint64_t a = memory.allocate(1024).value();
  const auto reads_after = [&](const Lanes& store, const Lanes& load) {
    const Outcome o = run([&](BlockChecker& b) { return b.global(store) && b.global(load); });
    return o.findings.size() + (o.undefined != 0 ? 1 : 0);
  };
  EXPECT_EQ(reads_after(row(kStore, a + 1, 1), row(kLoad, a + 1, 1)), 0u);
  EXPECT_EQ(reads_after(one(kStore, a + 101, 0, 1), one(kLoad, a + 100, 0, 2)), 1u);
  EXPECT_EQ(reads_after(one(kStore, a + 100, 0, 1), one(kLoad, a + 100, 0, 2)), 0u);
  EXPECT_EQ(reads_after(strided(kStore, 2, a + 200, 6), strided(kLoad, 2, a + 200, 6)), 0u);
  EXPECT_EQ(reads_after(strided(kStore, 2, a + 200, 6), strided(kLoad, 2, a + 202, 6)), 1u);
  EXPECT_EQ(reads_after(one(AccessKind::reduction, a + 600, 0), one(kLoad, a + 600, 0)), 1u)
      << "the reduction itself read it";
}

TEST_F(Checker, UninitialisedSharedBytes) {
  const auto shared = [&](const std::vector<Lanes>& accesses) {
    return run([&](BlockChecker& b) {
      bool all = true;
      for (const Lanes& a : accesses) all &= b.shared(a), b.warp_sync(0, kAllLanes);
      return all;
    });
  };
  EXPECT_EQ(shared({row(kLoad, 0)}).undefined, kAllLanes);
  EXPECT_EQ(shared({row(kStore, 0), row(kLoad, 0)}).undefined, 0u);
  EXPECT_EQ(shared({row(kStore, 3, 1), row(kLoad, 3, 1)}).undefined, 0u);
  EXPECT_EQ(shared({row(kStore, 0, 2), row(kLoad, 2, 2)}).undefined, 1u << 31);
  const auto sums = shared({row(kStore, 0, 2), row(AccessKind::reduction, 32).at(5)}).findings;
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].count, 24u);
  EXPECT_EQ(sums[0].thread, 8u);
  EXPECT_TRUE(sums[0].shared);
}

TEST_F(Checker, WhatIsUndefinedByteByByte) {
  const std::uint64_t a = memory.allocate(1024).value();
  memory.mark_initialised(a, 64);
  LaunchChecker launch(memory, 1, {});
  BlockChecker block(launch, 256, 1);
  block.begin_block(0);
  EXPECT_EQ(block.undefined_bytes(false, a + 56, 8), 0u);
  EXPECT_EQ(block.undefined_bytes(false, a + 64, 8), 0xffu);
  EXPECT_EQ(block.undefined_bytes(true, 8, 4), 15u);
  EXPECT_FALSE(memory.holds_undefined(a, 1024, false)) << "never written, not undefined";
  EXPECT_TRUE(memory.holds_undefined(a, 1024, true));
  // Few enough bytes to be padding, unless they make up the whole range. Then 16 bytes.
  block.store_undefined(false, row(kStore, a, 8), 1, 0xf0);
  EXPECT_EQ(block.undefined_bytes(false, a + 8, 8), 0xf0u);
  EXPECT_FALSE(memory.holds_undefined(a, 64, false));
  EXPECT_TRUE(memory.holds_undefined(a + 12, 4, false));
  EXPECT_FALSE(memory.holds_undefined(a + 11, 5, false));
  EXPECT_TRUE(memory.holds_undefined(a, 64, true));
  block.store_undefined(false, row(kStore, a, 8).at(3), 2, 0xff);
  EXPECT_FALSE(memory.holds_undefined(a, 64, false));
  block.store_undefined(false, row(kStore, a, 8).at(3), 3, 0x0f);
  EXPECT_TRUE(memory.holds_undefined(a, 64, false));
  EXPECT_FALSE(memory.holds_undefined(a + 28, 36, true));
  ASSERT_EQ(launch.undefined_stores().size(), 2u);
  EXPECT_EQ(launch.undefined_stores()[1].begin, a + 16);
  EXPECT_EQ(launch.undefined_stores()[1].end, a + 32);
  memory.copy_initialised(a + 128, a, 64);
  EXPECT_TRUE(memory.holds_undefined(a + 128 + 16, 8, false));
  EXPECT_TRUE(block.global(row(kStore, a)));
  EXPECT_FALSE(memory.holds_undefined(a, 64, true));
  block.store_undefined(true, row(kStore, 0), 5, 3);
  EXPECT_EQ(block.undefined_bytes(true, 20, 4), 15u);
}

TEST_F(Checker, ANewBlockHasUninitialisedSharedMemory) {
  LaunchChecker launch(memory, 2, {});
  BlockChecker block(launch, 256, 1);
  block.begin_block(0);
  block.shared(row(kStore, 0));
  block.begin_block(1);
  block.shared(row(AccessKind::reduction, 0));
  const auto findings = launch.findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, FindingKind::uninitialised);
  EXPECT_EQ(findings[0].block, 1u);
}

TEST_F(Checker, LanesOfOneStoreWithDifferentValues) {
  const std::uint64_t a = initialised(1024);
  const auto same = [](unsigned) { return 5; };
  const auto different = [](unsigned i) { return static_cast<int>(i == 20 ? 6 : 5); };
  const auto pairs = lanes(kStore, 4, [=](unsigned i) { return a + i * 5 % 16 * 4; });
  EXPECT_THAT(global(strided(kStore, 4, a, 0).with_values(same)).findings, IsEmpty());
  EXPECT_THAT(global(Lanes(pairs).with_values(same)).findings, IsEmpty());
  EXPECT_THAT(global(row(kStore, a).with_values(different)).findings, IsEmpty());
  const auto o = global(Lanes(pairs).with_values(different).at(3)).findings;
  ASSERT_EQ(o.size(), 1u);
  EXPECT_EQ(o[0].kind, FindingKind::global_race);
  EXPECT_EQ(o[0].thread, 20u);
  EXPECT_EQ(o[0].other_thread, 4u);
  EXPECT_EQ(o[0].other_pc, 3u);
  EXPECT_EQ(o[0].address, a + 20 * 5 % 16 * 4);
  // Inactive lanes do not count, and unknown values are not compared.
  EXPECT_THAT(global(Lanes(pairs).with_values(different).only(0xffff)).findings, IsEmpty());
  EXPECT_THAT(global(pairs).findings, IsEmpty());
  const auto shared = run(
      [&](BlockChecker& b) { return b.shared(strided(kStore, 4, 64, 0).with_values(different)); });
  ASSERT_EQ(shared.findings.size(), 1u);
  EXPECT_EQ(shared.findings[0].kind, FindingKind::shared_race);
  // Volatile stores do not race.
  EXPECT_THAT(global(strided(AccessKind::atomic_store, 4, a, 0).with_values(different)).findings,
              IsEmpty());
}

TEST_F(Checker, OneFindingAPlaceOfTheLowestBlockAndThread) {
  LaunchChecker launch(memory, 9, {});
  BlockChecker block(launch, 256, 1);
  for (const std::uint64_t b : {5u, 3u, 8u}) {
    block.begin_block(b);
    block.shared(one(AccessKind::reduction, 64, 9).at(1));
    block.shared(one(AccessKind::reduction, 68, 4).at(1));
    block.shared(one(AccessKind::reduction, 72, 2).at(2));
  }
  RawFinding reported;
  reported.kind = FindingKind::assertion;
  reported.block = 1;
  block.report(reported);
  const auto findings = launch.findings();
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].pc, 1u);
  EXPECT_EQ(findings[0].block, 3u);
  EXPECT_EQ(findings[0].thread, 4u);
  EXPECT_EQ(findings[0].count, 6u);
  EXPECT_EQ(findings[1].pc, 2u);
  EXPECT_EQ(findings[2].kind, FindingKind::assertion);
}

TEST_F(Checker, ChecksCanBeTurnedOff) {
  const std::uint64_t a = memory.allocate(256).value();
  LaunchChecker launch(memory, 2, {.races = false, .uninitialised = false});
  BlockChecker block(launch, 256, 1);
  for (const std::uint64_t b : {0u, 1u}) {
    block.begin_block(b);
    EXPECT_TRUE(block.global(row(kLoad, a)));
    EXPECT_TRUE(block.global(row(kStore, a)));
    EXPECT_TRUE(block.shared(row(kLoad, 0)));
    EXPECT_FALSE(block.global(row(kStore, a + 200)));
  }
  ASSERT_EQ(launch.findings().size(), 1u);
  EXPECT_EQ(launch.findings()[0].kind, FindingKind::out_of_bounds);
  EXPECT_EQ(launch.findings()[0].count, 2u);
  LaunchChecker bits_only(memory, 2, {.races = false});
  BlockChecker other(bits_only, 256, 1);
  other.begin_block(0);
  const std::uint64_t fresh = memory.allocate(256).value();
  other.global(row(AccessKind::reduction, fresh));
  EXPECT_EQ(bits_only.findings().size(), 1u);
}

TEST_F(Checker, Counters) {
  const std::uint64_t a = initialised(4096);
  const Counters c = run([&](BlockChecker& b) {
                       b.global(row(kLoad, a));
                       b.global(row(kLoad, a + 4));
                       b.global(row(kStore, a, 16).only(0xff));
                       b.global(strided(AccessKind::atomic, 4, a, 0));
                       b.global(strided(AccessKind::reduction, 4, a, 0).only(7));
                       b.global(one(AccessKind::atomic_load, a));
                       b.global(one(AccessKind::atomic_store, a));
                       b.shared(strided(kStore, 4, 0, 8));
                       b.shared(strided(kLoad, 4, 0, 8));
                       b.shared(strided(AccessKind::atomic, 4, 0, 0));
                       return true;
                     }).counters;
  EXPECT_EQ(c.global_load_bytes, 128u + 128 + 4);
  EXPECT_EQ(c.global_load_sectors, 4u + 5 + 1);
  EXPECT_EQ(c.global_store_bytes, 128u + 4);
  EXPECT_EQ(c.global_store_sectors, 4u + 1);
  EXPECT_EQ(c.global_atomics, 35u);
  EXPECT_EQ(c.atomic_sectors, 2u);
  EXPECT_EQ(c.atomic_passes, 35u) << "one lane after another";
  EXPECT_EQ(c.shared_stores, 1u);
  EXPECT_EQ(c.shared_loads, 1u);
  EXPECT_EQ(c.shared_atomics, 1u);
  EXPECT_EQ(c.shared_passes, 2u + 2 + 32);
  EXPECT_EQ(c.shared_replays, 1u + 1 + 31);
  EXPECT_EQ(c.shared_bytes, 384u);
}

TEST_F(Checker, TheShortWayOfUniformLoadsCountsAlike) {
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u, 16u, 32u}) {
    const auto counted = [&](bool short_way) {
      return run(
          [&](BlockChecker& b) {
            b.shared(row(kStore, 64, bytes));
            b.barrier(1);
            const std::uint64_t at = 64 + 3 * std::uint64_t{bytes};
            return short_way ? b.load_shared_uniform(0, 1, at, bytes)
                             : b.shared(strided(kLoad, bytes, at, 0));
          },
          2048);
    };
    const Outcome shortly = counted(true), fully = counted(false);
    EXPECT_TRUE(shortly.allowed);
    EXPECT_EQ(shortly.counters, fully.counters) << bytes;
    EXPECT_EQ(shortly.findings, fully.findings) << bytes;
  }
}

// Tiles of shared memory, checked byte by byte: which accesses are allowed, and which lanes read
// bytes that were never written.
TEST_F(Checker, TilesOfSharedMemory) {
  std::mt19937 random(5);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::uint32_t kBytes = 2048;
  int clean = 0, fresh = 0, outside = 0;
  for (int program = 0; program < 400; ++program) {
    LaunchChecker launch(memory, 1, {.races = false});
    BlockChecker block(launch, kBytes, 1);
    block.begin_block(0);
    std::array<bool, kBytes> written{};
    TileShape tiles[3];
    for (TileShape& t : tiles) {
      do t = random_tile(below, 1, 16, 16);
      while (t.size() > kBytes);
    }
    for (std::uint32_t step = 0; step < 60; ++step) {
      const TileShape& t = tiles[below(3)];
      const auto room = static_cast<std::uint32_t>((kBytes - t.size()) / t.bytes + 1);
      std::uint64_t origin = std::uint64_t{t.bytes} * below(room + (room + 15) / 16);
      if (below(30) == 0) origin += below(t.bytes);
      const AccessKind kind = below(3) == 0 ? kStore : kLoad;
      const Lanes a = Lanes(t.at(kind, origin)).at(step);
      bool allowed = true;
      std::uint32_t lanes_fresh = 0;
      for (unsigned i = 0; i < kLanes; ++i) {
        allowed &= a.address[i] + a.bytes <= kBytes && a.address[i] % a.bytes == 0;
      }
      for (unsigned i = 0; allowed && i < kLanes; ++i) {
        bool all = true;
        for (std::uint32_t b = 0; b < a.bytes; ++b) {
          bool& w = written[a.address[i] + b];
          all &= w;
          w |= kind == kStore;
        }
        lanes_fresh += kind == kLoad && !all ? 1 : 0;
      }
      const std::size_t before = launch.findings().size();
      const bool uniform = a.address[0] == a.address[1] && t.in_group == 0 && t.of_groups == 0;
      const bool short_way = kind == kLoad && uniform && program % 2 == 0 &&
                             block.load_shared_uniform(0, step, a.address[0], a.bytes);
      ASSERT_EQ(short_way || block.shared(a), allowed)
          << "program " << program << ", step " << step;
      const auto findings = launch.findings();
      ASSERT_EQ(findings.size() != before, !allowed);
      ASSERT_EQ(static_cast<std::uint32_t>(std::popcount(block.undefined)), lanes_fresh);
      block.undefined = 0;
      for (const RawFinding& f : findings) {
        if (f.pc == step && allowed) {
          ADD_FAILURE() << "a finding of an access that is allowed";
        }
      }
      ++(!allowed ? outside : lanes_fresh != 0 ? fresh : clean);
    }
  }
  EXPECT_GT(clean, 2000);
  EXPECT_GT(fresh, 2000);
  EXPECT_GT(outside, 500);
}

}  // namespace
}  // namespace assay::sim
