#include "sim/memory/shared_races.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/memory/checker.h"
#include "sim/memory/shared_oracle.h"
#include "sim/memory/warp_support.h"

namespace assay::sim {
namespace {

constexpr AccessKind kLoad = AccessKind::load, kStore = AccessKind::store,
                     kAtomic = AccessKind::atomic;

// One block of 4 warps.
class SharedRacesTest : public ::testing::Test {
 protected:
  GlobalMemory memory{1 << 20};
  LaunchChecker launch{memory, 1, {.uninitialised = false}};
  BlockChecker block{launch, 4096, 4};

  SharedRacesTest() { block.begin_block(0); }

  void does(std::uint32_t warp, const Lanes& a) { block.shared(Lanes(a).of_warp(warp)); }
  void sync_threads() { block.barrier(0xf); }
  std::size_t races() const { return launch.findings().size(); }
};

TEST_F(SharedRacesTest, WarpsNeedABarrier) {
  does(0, row(kStore, 0));
  does(1, row(kLoad, 0));
  EXPECT_EQ(races(), 1u);
  const RawFinding f = launch.findings()[0];
  EXPECT_EQ(f.kind, FindingKind::shared_race);
  EXPECT_TRUE(f.shared);
  EXPECT_EQ(f.thread, 32u);
  EXPECT_EQ(f.access, kLoad);
  EXPECT_EQ(f.other_thread, 0u);
  EXPECT_EQ(f.other_access, kStore);
  EXPECT_EQ(f.count, 32u);
}

TEST_F(SharedRacesTest, ABarrierOrders) {
  does(0, row(kStore, 0));
  sync_threads();
  does(1, row(kLoad, 0));
  does(2, row(kLoad, 0));
  sync_threads();
  does(3, row(kStore, 0));
  EXPECT_EQ(races(), 0u);
}

TEST_F(SharedRacesTest, AWriteAfterTwoReaders) {
  does(0, row(kLoad, 0).at(1));
  does(1, row(kLoad, 0).at(2));
  does(2, row(kLoad, 0).at(3));
  does(0, row(kStore, 0).at(4));
  ASSERT_EQ(races(), 1u);
  EXPECT_EQ(launch.findings()[0].other_pc, 2u);
  EXPECT_EQ(launch.findings()[0].other_thread, 32u);
}

TEST_F(SharedRacesTest, ANewBlockStartsAnew) {
  does(0, row(kStore, 0));
  block.begin_block(0);
  does(1, row(kLoad, 0));
  EXPECT_EQ(races(), 0u);
}

TEST_F(SharedRacesTest, NamedBarriersOrderThoseWhoTookPart) {
  does(0, row(kStore, 0));
  does(2, row(kStore, 128));
  block.barrier(0b0011, 1);
  does(1, row(kLoad, 0));
  EXPECT_EQ(races(), 0u);
  does(2, row(kLoad, 0));
  EXPECT_EQ(races(), 1u);
  does(1, row(kLoad, 128).at(9));
  EXPECT_EQ(races(), 2u);
}

TEST_F(SharedRacesTest, OrderPassesOn) {
  does(0, row(kStore, 0));
  block.barrier(0b0011, 1);
  block.barrier(0b0110, 2);
  does(2, row(kLoad, 0));
  EXPECT_EQ(races(), 0u);
  does(3, row(kLoad, 0));
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, AWarpThatHasExitedDoesNotHinderBarriers) {
  does(0, row(kStore, 0));
  block.barrier(0b0111);
  does(1, row(kLoad, 0));
  block.barrier(0b0111);
  does(2, row(kStore, 0));
  EXPECT_EQ(races(), 0u);
}

TEST_F(SharedRacesTest, ArriveOrdersWhatCameBefore) {
  does(0, row(kStore, 0));
  block.arrive(0, 3);
  does(0, row(kStore, 128));
  block.barrier(0b0010, 3);
  does(1, row(kLoad, 0));
  EXPECT_EQ(races(), 0u);
  does(1, row(kLoad, 128));  // written after warp 0 arrived
  EXPECT_EQ(races(), 1u);
  does(0, row(kStore, 0).at(5));  // and warp 0, which only arrived, knows nothing of the others
  EXPECT_EQ(races(), 2u);
}

TEST_F(SharedRacesTest, AnArrivalServesOneCompletion) {
  block.arrive(0, 3);
  block.barrier(0b0010, 3);
  does(0, row(kStore, 0));
  block.barrier(0b0010, 3);
  does(1, row(kLoad, 0));
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, AnMbarrierOrdersArrivalsBeforeWaits) {
  constexpr std::uint64_t kFull = 2048, kOther = 2056;
  does(0, row(kStore, 0));
  block.mbarrier_arrive(0, kFull);
  does(0, row(kStore, 128));
  block.mbarrier_wait(1, kFull);  // waits for the phase before
  block.mbarrier_complete(kFull);
  block.mbarrier_wait(2, kOther);
  block.mbarrier_wait(3, kFull);
  does(3, row(kLoad, 0));
  EXPECT_EQ(races(), 0u);
  does(3, row(kLoad, 128).at(1));  // written after the arrival
  EXPECT_EQ(races(), 1u);
  does(1, row(kLoad, 0).at(2));
  EXPECT_EQ(races(), 2u);
  does(2, row(kLoad, 0).at(3));
  EXPECT_EQ(races(), 3u);
  does(0, row(kStore, 0).at(4));  // warp 0, which only arrived, knows nothing of the others
  EXPECT_EQ(races(), 4u);
}

TEST_F(SharedRacesTest, AnMbarrierIsNoBarrier15) {
  does(0, row(kStore, 0));
  block.arrive(0, 15);
  block.mbarrier_arrive(1, 2048);
  block.mbarrier_complete(2048);
  block.mbarrier_wait(1, 2048);
  block.barrier(0b0100, 15);
  does(2, row(kLoad, 0));
  EXPECT_EQ(races(), 0u);
}

// A warp acts for the first time after others have synchronised with each other.
TEST_F(SharedRacesTest, WhoActsLateIsUnknown) {
  does(0, row(kStore, 0));
  block.mbarrier_arrive(0, 2048);
  block.mbarrier_complete(2048);
  block.mbarrier_wait(1, 2048);
  does(2, row(kStore, 512));
  does(1, row(kLoad, 512));
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, AFlagBehindAFenceOrders) {
  does(0, row(kStore, 0));
  block.fence_block(0);
  does(0, row(kStore, 128));
  does(0, row(AccessKind::atomic_store, 256));
  does(1, row(AccessKind::atomic_load, 256));
  does(1, row(kLoad, 0));
  EXPECT_EQ(races(), 0u);
  does(1, row(kLoad, 128).at(1));
  EXPECT_EQ(races(), 1u);
  does(2, row(AccessKind::reduction, 256));  // learns nothing
  does(2, row(kLoad, 0).at(2));
  EXPECT_EQ(races(), 2u);
  does(3, row(AccessKind::atomic_store, 260));  // without a fence
  does(2, row(AccessKind::atomic_load, 260));
}

TEST_F(SharedRacesTest, LanesOfAWarp) {
  does(0, row(kStore, 0));
  does(0, row(kLoad, 0));  // each lane reads its own word
  EXPECT_EQ(races(), 0u);
  does(0, row(kLoad, 4).only(kAllLanes >> 1));
  ASSERT_EQ(races(), 1u);
  EXPECT_EQ(launch.findings()[0].thread, 0u);
  EXPECT_EQ(launch.findings()[0].other_thread, 1u);
}

TEST_F(SharedRacesTest, AWarpWideSyncOrdersLanes) {
  for (int step = 0; step < 3; ++step) {
    does(0, row(kStore, 0));
    block.warp_sync(0, kAllLanes);
    does(0, row(kLoad, 4).only(kAllLanes >> 1));
    block.warp_sync(0, kAllLanes);
  }
  EXPECT_EQ(races(), 0u);
  does(1, row(kLoad, 0));  // but not to other warps
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, ASyncOfSomeLanesOrdersThose) {
  does(0, row(kStore, 0));
  block.warp_sync(0, 0x0000ffff);
  does(0, strided(kLoad, 4, 0, 0).only(0x0000ffff));
  EXPECT_EQ(races(), 0u);
  does(0, strided(kLoad, 4, 0, 0).only(0x00030000));
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, HalfWarpsThatSyncByThemselves) {
  for (int step = 0; step < 4; ++step) {
    does(0, row(kStore, 0));
    block.warp_sync(0, 0x0000ffff);
    block.warp_sync(0, 0xffff0000);
    // Each lane reads the next one's word, within its half.
    does(0, lanes(kLoad, 4, [](unsigned i) { return (i / 16 * 16 + (i + 1) % 16) * 4; }));
    block.warp_sync(0, 0x0000ffff);
    block.warp_sync(0, 0xffff0000);
  }
  EXPECT_EQ(races(), 0u);
  does(0, one(kLoad, 0, 16));
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, AReductionWithinAWarpWithoutSync) {
  does(0, row(kLoad, 0));
  does(0, row(kLoad, 64).only(0xffff));
  does(0, row(kStore, 0).only(0xffff));
  EXPECT_EQ(races(), 0u);
  does(0, row(kLoad, 32).only(0xff));  // what lanes 8 to 15 just wrote
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, LanesOfOneLoadThatAreNoNeighbours) {
  // Lanes 1 and 5 read one word.
  does(0, lanes(kLoad, 4, [](unsigned i) { return (i == 5 ? 1 : i) * 8; }));
  does(0, one(kStore, 8, 5));
  ASSERT_EQ(races(), 1u);
  EXPECT_EQ(launch.findings()[0].other_thread, 1u);
}

TEST_F(SharedRacesTest, BroadcastThenWrite) {
  does(0, strided(kLoad, 4, 0, 0));
  does(0, one(kStore, 0, 0));
  ASSERT_EQ(races(), 1u);
  EXPECT_NE(launch.findings()[0].other_thread, 0u);
}

TEST_F(SharedRacesTest, AllLanesWriteTheSameAndReadItBack) {
  does(0, strided(kStore, 4, 0, 0).at(1));
  does(0, strided(kLoad, 4, 0, 0).at(2));
  EXPECT_EQ(races(), 0u);
  does(0, one(kStore, 0, 3).at(3));
  EXPECT_EQ(races(), 2u);  // it races with the other lanes' writes and reads
}

TEST_F(SharedRacesTest, LanesOfOneStoreToOneAddress) {
  // Not neighbouring lanes: addresses 0, 4, 0, 4, ...
  does(0, lanes(kStore, 4, [](unsigned i) { return i % 2 * 4; }));
  EXPECT_EQ(races(), 0u);
}

// Stores from several warps and of several sizes, whose values equal the memory's contents or
// differ from them.
TEST(SharedStores, EqualOnesAreANote) {
  GlobalMemory memory{1 << 20};
  std::vector<std::byte> data(256, std::byte{0xff});
  LaunchChecker launch(memory, 1, {.uninitialised = false});
  BlockChecker block(launch, 256, 4, data.data());
  block.begin_block(0);
  std::uint32_t place = 0;
  const auto store = [&](std::uint32_t warp, Lanes a, int value) {
    a.with_values([=](unsigned) { return value; }).of_warp(warp).at(++place);
    block.shared(a);
    for (unsigned l = 0; l < kLanes; ++l) {
      if (((a.mask >> l) & 1u) == 0) continue;
      std::memcpy(data.data() + a.address[l], a.values.data() + l * a.bytes, a.bytes);
    }
  };
  const auto found = [&] {
    std::vector<std::pair<FindingKind, std::uint32_t>> kinds;
    for (const RawFinding& f : launch.findings()) kinds.emplace_back(f.kind, f.pc);
    return kinds;
  };
  store(0, row(kStore, 0), 3);
  store(1, row(kStore, 0), 3);
  store(2, strided(kStore, 4, 64, 0), 3);
  using ::testing::ElementsAre;
  using Kind = FindingKind;
  EXPECT_THAT(found(),
              ElementsAre(std::pair(Kind::equal_stores, 2u), std::pair(Kind::equal_stores, 3u)));
  store(3, one(kStore, 64, 5, 2), 4);
  EXPECT_THAT(found(),
              ElementsAre(std::pair(Kind::shared_race, 4u), std::pair(Kind::equal_stores, 2u),
                          std::pair(Kind::equal_stores, 3u)));
  // A store of 16 bytes: its first word is equal, the others are not.
  block.barrier(0xf);
  store(0, one(kStore, 128, 0, 16), 3);
  store(1, one(kStore, 136, 0), 1);
  EXPECT_EQ(found().size(), 4u);
  EXPECT_EQ(found()[1].second, 6u);
  // After a barrier there is nothing to report; a load is not excused.
  block.barrier(0xf);
  store(0, one(kStore, 0, 0), 9);
  block.shared(one(kLoad, 0, 0).of_warp(1).at(8));
  EXPECT_THAT(found(), ::testing::Contains(std::pair(Kind::shared_race, 8u)));
}

TEST_F(SharedRacesTest, Atomics) {
  does(0, strided(kAtomic, 4, 0, 0));
  does(1, strided(kAtomic, 4, 0, 0));
  does(2, strided(AccessKind::reduction, 4, 0, 0));
  EXPECT_EQ(races(), 0u);
  does(2, one(kLoad, 0, 0));  // the last to add reads without a barrier
  ASSERT_EQ(races(), 1u);
  EXPECT_EQ(launch.findings()[0].other_access, kAtomic);
  sync_threads();
  does(3, one(kLoad, 0, 0).at(7));
  EXPECT_EQ(races(), 1u);
  does(1, one(kAtomic, 0, 0).at(8));
  EXPECT_EQ(races(), 2u);
  does(0, one(kStore, 0, 0).at(9));
  EXPECT_EQ(races(), 4u);  // it races with the read and with the atomic operation
}

TEST_F(SharedRacesTest, VolatileAccessesDoNotRaceWithOneAnother) {
  does(0, row(AccessKind::atomic_store, 0));
  does(1, row(AccessKind::atomic_load, 0));
  does(1, row(kLoad, 128));
  does(2, row(AccessKind::atomic_load, 128));
  does(0, row(AccessKind::atomic_load, 256));
  does(1, row(kAtomic, 256));
  EXPECT_EQ(races(), 0u);
  does(2, row(kStore, 0));
  EXPECT_EQ(races(), 1u);
}

TEST_F(SharedRacesTest, AdjacentBytesDoNotRace) {
  for (std::uint32_t w = 0; w < 4; ++w) does(w, strided(kStore, 1, w, 4));
  for (std::uint32_t w = 0; w < 4; ++w) does(w, strided(kLoad, 1, w, 4));
  for (std::uint32_t w = 0; w < 4; ++w) does(w, row(kStore, 512 + w * 64, 2));
  does(0, row(kStore, 1024, 2));
  does(0, row(kLoad, 1024, 2));
  EXPECT_EQ(races(), 0u);
  does(3, strided(kLoad, 4, 0, 4).at(1));
  EXPECT_EQ(races(), 1u);
  does(0, row(kLoad, 1026, 2).only(1).at(2));  // of lane 1
  EXPECT_EQ(races(), 2u);
}

TEST_F(SharedRacesTest, WideAccesses) {
  does(0, row(kStore, 0, 16));
  does(0, row(kLoad, 0, 16));
  EXPECT_EQ(races(), 0u);
  does(1, one(kLoad, 16 * 31 + 12, 0));
  ASSERT_EQ(races(), 1u);
  EXPECT_EQ(launch.findings()[0].other_thread, 31u);
}

TEST_F(SharedRacesTest, ATiledLoop) {
  // Each warp writes its part of a tile, and all warps read the whole tile.
  for (int tile = 0; tile < 5; ++tile) {
    for (std::uint32_t w = 0; w < 4; ++w) does(w, row(kStore, w * 128));
    sync_threads();
    for (std::uint32_t w = 0; w < 4; ++w) {
      for (std::uint64_t k = 0; k < 4; ++k) {
        does(w, row(kLoad, k * 128));
        does(w, strided(kLoad, 4, k * 128, 0));
        does(w, lanes(kLoad, 4, [=](unsigned i) { return (i * 7 + k * 32) % 128 * 4; }));
      }
    }
    if (tile != 4) sync_threads();
  }
  EXPECT_EQ(races(), 0u);
  does(0, row(kStore, 0));
  EXPECT_GE(races(), 1u);
}

// Random programs, compared with checking every pair of accesses, up to the first race of each
// program: after that, a detector that keeps only the last accesses may differ.
TEST(SharedRacesAtRandom, AgreesWithHappensBefore) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  GlobalMemory memory(1 << 20);
  int racy = 0, clean = 0, missed = 0;
  for (int program = 0; program < 6000; ++program) {
    LaunchChecker launch(memory, 1, {.uninitialised = false});
    constexpr std::uint32_t kWarps = 3, kUsed = 4;  // lanes 0 to 3 of each warp
    BlockChecker block(launch, 128, kWarps);
    block.begin_block(0);
    SharedOracle oracle(kWarps);
    // With syncs of part of a warp and atomic loads, findings are right but races may be missed.
    const bool exact = program % 4 != 0;
    const std::uint32_t smallest = below(3), words = 1 + below(8), sync_rate = 2 + below(8);
    const std::uint32_t steps = 4 + below(40);
    bool ended = false;
    for (std::uint32_t step = 0; step < steps && !ended; ++step) {
      const std::uint32_t warp = below(kWarps);
      if (below(10) < sync_rate) {
        const std::uint32_t what = below(12);
        const std::uint32_t some = 1 + below((1u << kWarps) - 1);
        if (what < 2) {
          block.barrier((1u << kWarps) - 1);
          oracle.barrier((1u << kWarps) - 1, 0);
        } else if (what < 4) {
          block.barrier(some, 1);
          oracle.barrier(some, 1);
        } else if (what == 4) {
          block.arrive(warp, 1);
          oracle.arrive(warp, 1);
        } else if (what == 8) {
          block.mbarrier_arrive(warp, 64);
          oracle.mbarrier_arrive(warp);
          if (below(2) == 0) {
            block.mbarrier_complete(64);
            oracle.mbarrier_complete();
          }
        } else if (what == 9) {
          block.mbarrier_wait(warp, 64);
          oracle.mbarrier_wait(warp);
        } else if (what == 10 && program % 2 == 0) {
          block.fence_block(warp);
          oracle.fence(warp);
        } else {
          const std::uint32_t part = exact ? kAllLanes : 1 + below((1u << kUsed) - 1);
          block.warp_sync(warp, part);
          oracle.warp_sync(warp, part);
        }
        continue;
      }
      constexpr AccessKind kinds[] = {
          kLoad, kLoad, kStore, kAtomic, AccessKind::atomic_store, AccessKind::atomic_load};
      const AccessKind kind = kinds[below(exact ? 5 : 6)];
      const std::uint32_t bytes = 1u << (smallest + below(3 - smallest));
      const std::uint32_t places = words * 4 / bytes;
      Lanes a = lanes(kind, bytes, [&](unsigned) { return below(places) * bytes; });
      if (below(3) == 0) a = strided(kind, bytes, 0, 0);
      if (below(3) == 0) a = row(kind, 0, bytes).only((1u << std::min(places, kUsed)) - 1);
      a.mask &= 1 + below((1u << kUsed) - 1);
      if (a.mask == 0) a.mask = 1;
      a.of_warp(warp).at(step);
      const std::size_t before = launch.findings().size();
      block.shared(a);
      const bool found = launch.findings().size() != before;
      const bool expected = oracle.access(a);
      if (exact || found) {
        ASSERT_EQ(found, expected) << "program " << program << ", step " << step;
      }
      missed += expected && !found ? 1 : 0;
      ended = expected;
    }
    ++(ended ? racy : clean);
  }
  // The test has seen enough programs with and without races.
  EXPECT_GT(racy, 1000);
  EXPECT_GT(clean, 300);
  EXPECT_LT(missed, racy / 20);
}

// Whole warps read and write tiles in a few shapes, each with many origins.
TEST(SharedRacesAtRandom, AgreesWithHappensBeforeOnTiles) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  GlobalMemory memory(1 << 20);
  int racy = 0, clean = 0;
  for (int program = 0; program < 1500; ++program) {
    LaunchChecker launch(memory, 1, {.uninitialised = false});
    constexpr std::uint32_t kWarps = 3, kBytes = 2048;
    BlockChecker block(launch, kBytes, kWarps);
    block.begin_block(0);
    SharedOracle oracle(kWarps);
    TileShape tiles[3];
    for (TileShape& t : tiles) {
      do t = random_tile(below, program % 3 == 0 ? 1 : 4, 16, 16);
      while (t.size() > kBytes);
    }
    const std::uint32_t steps = 4 + below(40), sync_rate = 1 + below(8), store_rate = 1 + below(8);
    const bool atomics = below(4) == 0;
    bool ended = false;
    for (std::uint32_t step = 0; step < steps && !ended; ++step) {
      const std::uint32_t warp = below(kWarps), what = below(20);
      if (what < sync_rate) {
        const std::uint32_t some = what == 0 ? 1 + below((1u << kWarps) - 1) : (1u << kWarps) - 1;
        if (what == 1) {
          block.warp_sync(warp, kAllLanes);
          oracle.warp_sync(warp, kAllLanes);
        } else {
          block.barrier(some, what == 0 ? 1 : 0);
          oracle.barrier(some, what == 0 ? 1 : 0);
        }
        continue;
      }
      const TileShape& t = tiles[below(3)];
      const auto room = static_cast<std::uint32_t>((kBytes - t.size()) / t.bytes + 1);
      AccessKind kind = below(24) < store_rate ? kStore : kLoad;
      if (atomics && below(8) == 0) kind = kAtomic;
      Lanes a = t.at(kind, std::uint64_t{t.bytes} * (below(2) == 0 ? below(room) : room / 2));
      a.of_warp(warp).at(step);
      const std::size_t before = launch.findings().size();
      block.shared(a);
      const bool found = launch.findings().size() != before;
      ended = oracle.access(a);
      ASSERT_EQ(found, ended) << "program " << program << ", step " << step;
    }
    ++(ended ? racy : clean);
  }
  EXPECT_GT(racy, 300);
  EXPECT_GT(clean, 300);
}

// The shortcut for an access's shape changes no result, not even after the first race; nor does the
// shortcut for loads by all lanes from one address.
TEST(SharedRacesAtRandom, ShortWaysChangeNoConflict) {
  std::mt19937 random(13);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  int with_shape = 0, uniform = 0;
  std::size_t conflicts = 0;
  for (int program = 0; program < 2000; ++program) {
    constexpr std::uint32_t kWarps = 6, kBytes = 2048;
    SharedRaces plain(kBytes, kWarps), shaped(kBytes, kWarps);
    const auto both = [&](auto&& f) {
      f(plain);
      f(shaped);
    };
    LaneShapes shapes;
    TileShape tiles[4];
    for (TileShape& t : tiles) {
      do t = random_tile(below, program % 3 == 0 ? 1 : 4, 16, 16);
      while (t.size() > kBytes);
    }
    const std::uint32_t sync_rate = 1 + below(6), store_rate = 1 + below(5);
    const bool atomics = below(4) == 0, parts = below(3) == 0;
    for (std::uint32_t step = 0; step < 100; ++step) {
      const std::uint32_t warp = below(kWarps), what = below(20);
      if (what < sync_rate) {
        const std::uint32_t some = 1 + below((1u << kWarps) - 1);
        if (what == 0 && parts) {
          both([&](SharedRaces& r) { r.barrier(some, 1); });
        } else if (what == 1) {
          both([&](SharedRaces& r) { r.warp_sync(warp, parts ? ~some : kAllLanes); });
        } else if (what == 2 && parts) {
          both([&](SharedRaces& r) { r.arrive(warp, 2); });
        } else {
          both([&](SharedRaces& r) { r.barrier((1u << kWarps) - 1, 0); });
        }
        continue;
      }
      const TileShape& t = tiles[below(4)];
      const auto room = static_cast<std::uint32_t>((kBytes - t.size()) / t.bytes + 1);
      AccessKind kind = below(40) < store_rate ? kStore : kLoad;
      if (atomics && below(8) == 0) kind = below(2) == 0 ? kAtomic : AccessKind::atomic_load;
      Lanes a = t.at(kind, std::uint64_t{t.bytes} * (below(2) == 0 ? below(room) : room / 2));
      const bool one_address = below(6) == 0;
      if (one_address) a = strided(kind, t.bytes, a.address[0], 0);
      if (below(8) == 0) a.mask = static_cast<std::uint32_t>(random() | 1);
      a.of_warp(warp).at(step);
      const WarpAccess access = a;
      const LanePattern p = find_pattern(access);
      const LaneShape* const shape = a.mask == kAllLanes ? shapes.find(access) : nullptr;
      with_shape += shape != nullptr ? 1 : 0;
      const auto& expected = plain.access(access, p);
      if (one_address && kind == kLoad && a.mask == kAllLanes &&
          shaped.load_uniform(warp, step, a.address[0], a.bytes)) {
        ++uniform;
        ASSERT_TRUE(expected.empty()) << "program " << program << ", step " << step;
        continue;
      }
      const auto& found = shaped.access(access, p, shape);
      conflicts += expected.size();
      ASSERT_EQ(found.size(), expected.size()) << "program " << program << ", step " << step;
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(std::tie(found[i].lane, found[i].address, found[i].other_pc,
                           found[i].other_thread, found[i].other_access),
                  std::tie(expected[i].lane, expected[i].address, expected[i].other_pc,
                           expected[i].other_thread, expected[i].other_access))
            << "program " << program << ", step " << step;
      }
    }
  }
  EXPECT_GT(with_shape, 50000);
  EXPECT_GT(uniform, 5000);
  EXPECT_GT(conflicts, 10000u);
}

}  // namespace
}  // namespace assay::sim
