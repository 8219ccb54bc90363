#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include "sim/memory/checker.h"
#include "sim/memory/warp_support.h"

namespace assay::sim {
namespace {

using ::testing::IsEmpty;

constexpr AccessKind kLoad = AccessKind::load, kStore = AccessKind::store,
                     kAtomic = AccessKind::atomic, kAtomicLoad = AccessKind::atomic_load,
                     kAtomicStore = AccessKind::atomic_store;
constexpr std::uint32_t kBlocks = 6;

// A launch of kBlocks blocks of one warp.
class GlobalRaces : public ::testing::Test {
 protected:
  GlobalMemory memory{1 << 22};
  std::uint64_t data = array(1 << 16), other = array(1 << 16), counter = array(256);

  std::uint64_t array(std::uint64_t bytes) {
    const std::uint64_t a = memory.allocate(bytes).value();
    memory.mark_initialised(a, bytes);
    return a;
  }
  static std::vector<std::uint32_t> in_order() {
    std::vector<std::uint32_t> order(kBlocks);
    std::iota(order.begin(), order.end(), 0u);
    return order;
  }
  // Runs the blocks one after the other.
  template <class F>
  std::vector<RawFinding> run(F&& body, std::vector<std::uint32_t> order = in_order()) {
    LaunchChecker launch(memory, kBlocks, {});
    BlockChecker block(launch, 0, 1);
    for (const std::uint32_t b : order) {
      block.begin_block(b);
      body(block, b);
    }
    return launch.findings();
  }
  // Checks that every order that the test tries gives the same findings.
  template <class F>
  std::vector<RawFinding> run_all_orders(F&& body) {
    auto order = in_order();
    const auto expected = run(body, order);
    std::mt19937 random(1);
    for (int i = 0; i < 20; ++i) {
      std::shuffle(order.begin(), order.end(), random);
      EXPECT_EQ(run(body, order), expected);
    }
    return expected;
  }
};

TEST_F(GlobalRaces, DisjointOutputsAndSharedInputs) {
  EXPECT_THAT(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
                for (std::uint64_t k = 0; k < 8; ++k) b.global(row(kLoad, data + 128 * k));
                for (std::uint64_t k = 0; k < 8; ++k) b.global(row(kLoad, data + 132 * k));
                b.global(row(kStore, other + 128 * i));
                b.global(row(kLoad, other + 128 * i));
                b.global(row(kStore, other + 128 * i));
              }),
              IsEmpty());
}

TEST_F(GlobalRaces, PlainSumsRace) {
  const auto findings = run_all_orders([&](BlockChecker& b, std::uint32_t) {
    b.global(one(kLoad, data).at(1));
    b.global(one(kStore, data).at(2));
  });
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, FindingKind::global_race);
  EXPECT_EQ(findings[0].pc, 1u);
  EXPECT_EQ(findings[0].access, kLoad);
  EXPECT_EQ(findings[0].block, 1u);
  EXPECT_EQ(findings[0].other_pc, 2u);
  EXPECT_EQ(findings[0].other_block, 0u);
  EXPECT_EQ(findings[1].pc, 2u);
  EXPECT_EQ(findings[1].other_pc, 2u);
  EXPECT_EQ(findings[1].other_access, kStore);
  EXPECT_EQ(findings[1].address, data);
  EXPECT_FALSE(findings[1].shared);
}

TEST_F(GlobalRaces, ANeighboursOutput) {
  const auto findings = run_all_orders([&](BlockChecker& b, std::uint32_t i) {
    b.global(row(kStore, data + 128 * i).at(1));
    b.global(row(kLoad, data + 128 * ((i + 1) % kBlocks)).at(2));
  });
  ASSERT_FALSE(findings.empty());
  std::uint64_t words = 0;
  for (const auto& f : findings) words += f.count;
  EXPECT_EQ(words, 32u * kBlocks);
}

TEST_F(GlobalRaces, ALaunchOrdersEverything) {
  run([&](BlockChecker& b, std::uint32_t i) { b.global(row(kStore, data + 128 * i)); });
  EXPECT_THAT(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
                b.global(row(kLoad, data + 128 * ((i + 1) % kBlocks)));
              }),
              IsEmpty());
}

TEST_F(GlobalRaces, TheReaderIsNamedThoughOthersReadToo) {
  // All blocks read the word; the lowest one writes it.
  const auto findings = run_all_orders([&](BlockChecker& b, std::uint32_t i) {
    b.global(one(kLoad, data).at(1));
    if (i == 0) b.global(one(kStore, data).at(2));
  });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].block, 1u);
  EXPECT_EQ(findings[0].pc, 1u);
  EXPECT_EQ(findings[0].other_block, 0u);
  EXPECT_EQ(findings[0].other_access, kStore);
}

TEST_F(GlobalRaces, AtomicsDoNotRaceWithOneAnother) {
  EXPECT_THAT(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
                b.global(one(kAtomic, data));
                b.global(one(AccessKind::reduction, data));
                b.global(one(i == 0 ? kAtomicStore : kAtomicLoad, data + 4));
              }),
              IsEmpty());
}

TEST_F(GlobalRaces, APlainWriteRacesWithAtomics) {
  EXPECT_EQ(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
              b.global(one(i == 0 ? kStore : AccessKind::reduction, data));
            }).size(),
            1u);
  EXPECT_EQ(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
              b.global(one(i == 0 ? kStore : kAtomicLoad, data));
            }).size(),
            1u);
}

TEST_F(GlobalRaces, TheReadOfACompareAndSwapLoop) {
  EXPECT_THAT(run_all_orders([&](BlockChecker& b, std::uint32_t) {
                b.global(one(kLoad, data));
                b.global(one(kAtomic, data));
              }),
              IsEmpty());
}

std::vector<FindingKind> kinds(const std::vector<RawFinding>& findings) {
  std::vector<FindingKind> result;
  for (const RawFinding& f : findings) result.push_back(f.kind);
  return result;
}

// Stores of whole rows, of spaced words, of parts of words, and by one lane.
TEST_F(GlobalRaces, EqualStoresAreANote) {
  using ::testing::ElementsAre;
  const std::function<Lanes(std::uint64_t)> shapes[] = {
      [](std::uint64_t a) { return row(kStore, a); },
      [](std::uint64_t a) { return row(kStore, a, 16); },
      [](std::uint64_t a) { return strided(kStore, 4, a, 12); },
      [](std::uint64_t a) { return strided(kStore, 2, a, 6); },
      [](std::uint64_t a) { return one(kStore, a, 3); },
      [](std::uint64_t a) { return one(kStore, a + 3, 3, 1); },
  };
  for (const auto& shape : shapes) {
    const auto stores = [&](const std::function<int(std::uint32_t, std::uint32_t)>& value) {
      // Repeated, so that a block's earlier stores are checked too.
      return kinds(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
        for (std::uint32_t t = 0; t < 3; ++t) {
          b.global(shape(data).with_values(
              [&](unsigned lane) { return value(i, t) + static_cast<int>(lane); }));
        }
      }));
    };
    EXPECT_THAT(stores([](std::uint32_t, std::uint32_t) { return 7; }),
                ElementsAre(FindingKind::equal_stores));
    // One of the blocks stores another value, at one of the three times.
    for (std::uint32_t other = 0; other < kBlocks; ++other) {
      for (std::uint32_t time = 0; time < 3; ++time) {
        EXPECT_THAT(stores([&](std::uint32_t i, std::uint32_t t) {
                      return i == other && t == time ? 8 : 7;
                    }),
                    ::testing::Contains(FindingKind::global_race))
            << other << ' ' << time;
      }
    }
  }
}

TEST_F(GlobalRaces, AnEqualStoreStillRacesWithALoad) {
  const auto seven = [](unsigned) { return 7; };
  const auto found = kinds(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
    b.global(row(kStore, data).with_values(seven));
    if (i == 3) b.global(row(kLoad, data));
  }));
  EXPECT_THAT(found,
              ::testing::UnorderedElementsAre(FindingKind::global_race, FindingKind::equal_stores));
}

TEST_F(GlobalRaces, EqualBytesOfWordsThatDifferElsewhere) {
  // Each block also has its own byte.
  const auto with = [&](int shared) {
    return kinds(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
      if (i > 1) return;
      b.global(one(kStore, data + i, 0, 1).with_values([&](unsigned) { return 10 + int(i); }));
      b.global(
          one(kStore, data + 3, 0, 1).with_values([&](unsigned) { return i == 0 ? 5 : shared; }));
    }));
  };
  EXPECT_THAT(with(5), ::testing::ElementsAre(FindingKind::equal_stores));
  EXPECT_THAT(with(6), ::testing::ElementsAre(FindingKind::global_race));
}

// After an acquire, conflicts are reported as they happen.
TEST_F(GlobalRaces, EqualStoresOfOrderedGrids) {
  for (const int last : {7, 8}) {
    const auto found = kinds(run([&](BlockChecker& b, std::uint32_t i) {
      b.global(one(kStore, other + 4 * i));
      b.fence();
      b.global(one(kAtomic, counter));
      b.global(row(kStore, data).with_values([&](unsigned) { return i == 4 ? last : 7; }));
    }));
    std::vector<FindingKind> expected{FindingKind::equal_stores};
    if (last != 7) expected.insert(expected.begin(), FindingKind::global_race);
    EXPECT_EQ(found, expected);
  }
}

TEST_F(GlobalRaces, AdjacentBytes) {
  const auto bytes = [&](std::uint32_t size, std::uint64_t apart) {
    return run_all_orders([&](BlockChecker& b, std::uint32_t i) {
             b.global(one(kStore, data + apart * i, 0, size));
           })
        .size();
  };
  EXPECT_EQ(bytes(1, 1), 0u);
  EXPECT_EQ(bytes(2, 2), 0u);
  EXPECT_EQ(bytes(1, 0), 1u);
  // The boundary between two blocks' rows lies within a word.
  EXPECT_EQ(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
              b.global(row(kStore, data + 2 + 64 * i, 2));
            }).size(),
            0u);
  EXPECT_EQ(run_all_orders([&](BlockChecker& b, std::uint32_t i) {
              b.global(row(kStore, data + 2 + 62 * i, 2));
            })[0]
                .count,
            kBlocks - 1u);
}

// The reduction in one launch: threadFenceReduction of the CUDA samples.
TEST_F(GlobalRaces, TheLastBlockReduces) {
  for (const bool fenced : {true, false}) {
    std::vector<std::uint32_t> order = in_order();
    std::mt19937 random(2);
    for (int i = 0; i < 10; ++i) {
      const auto findings = run(
          [&](BlockChecker& b, std::uint32_t block) {
            b.global(row(kLoad, other + 128 * block));
            b.global(one(kStore, data + 4 * block).at(1));
            if (fenced) b.fence();
            b.global(one(kAtomic, counter).at(2));
            if (block != order.back()) return;
            b.global(row(kLoad, data).only((1u << kBlocks) - 1).at(3));
            b.global(one(kStore, data + 4096));
            b.global(one(kStore, counter).at(4));
          },
          order);
      if (fenced) {
        ASSERT_THAT(findings, IsEmpty());
      } else {
        ASSERT_FALSE(findings.empty());
        EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const RawFinding& f) {
          return std::min(f.pc, f.other_pc) == 1 && std::max(f.pc, f.other_pc) == 3;
        }));
      }
      std::shuffle(order.begin(), order.end(), random);
    }
  }
}

TEST_F(GlobalRaces, WhatIsDoneBehindTheFenceIsNotReleased) {
  EXPECT_FALSE(run([&](BlockChecker& b, std::uint32_t i) {
                 b.fence();
                 b.global(one(kStore, data + 4 * i));
                 b.global(one(kAtomic, counter));
                 if (i == kBlocks - 1) b.global(row(kLoad, data).only((1u << kBlocks) - 1));
               }).empty());
}

TEST_F(GlobalRaces, AReductionInstructionReleasesButDoesNotAcquire) {
  const auto with = [&](AccessKind last) {
    return run([&](BlockChecker& b, std::uint32_t i) {
             b.global(one(kStore, data + 4 * i));
             b.fence();
             b.global(one(i == kBlocks - 1 ? last : AccessKind::reduction, counter));
             if (i == kBlocks - 1) b.global(row(kLoad, data).only((1u << kBlocks) - 1));
           })
        .size();
  };
  EXPECT_EQ(with(kAtomic), 0u);
  EXPECT_EQ(with(kAtomicLoad), 0u);
  EXPECT_NE(with(AccessKind::reduction), 0u);
}

// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back".
TEST_F(GlobalRaces, DecoupledLookBack) {
  for (const bool fenced : {true, false}) {
    const auto findings = run([&](BlockChecker& b, std::uint32_t i) {
      b.global(row(kLoad, other + 128 * i));
      b.global(one(kStore, data + 4 * i).at(1));
      if (fenced) b.fence();
      b.global(one(kAtomicStore, counter + 4 * i));
      for (std::uint32_t p = i; p-- > 0 && p + 3 > i;) {
        b.global(one(kAtomicLoad, counter + 4 * p));
        b.global(one(kAtomicLoad, counter + 4 * p));
        b.global(one(kLoad, data + 4 * p).at(2));
      }
      b.global(row(kStore, data + 4096 + 128 * i));
    });
    EXPECT_EQ(findings.empty(), fenced);
  }
}

// Thrust's unique in place: a tile overwrites what earlier tiles have read, once it has their sums.
// No fence orders the reads before the flag; for writes this would be a race.
TEST_F(GlobalRaces, AFlagFollowsWhatWasReadBeforeIt) {
  const auto compaction = [&](bool waits, AccessKind first) {
    return run([&](BlockChecker& b, std::uint32_t i) {
      b.global(row(first, data + 128 * i));
      if (i > 0 && waits) b.global(one(kAtomicLoad, counter + 4 * (i - 1)));
      b.global(one(kAtomicStore, counter + 4 * i));
      for (std::uint32_t p = 0; p < i; ++p) b.global(row(kStore, data + 128 * p));
    });
  };
  const auto only_stores = [](const std::vector<RawFinding>& findings) {
    return std::ranges::all_of(findings, [](const RawFinding& f) {
      return f.access == kStore && f.other_access == kStore;
    });
  };
  EXPECT_TRUE(only_stores(compaction(true, kLoad))) << "of several tiles at one place";
  EXPECT_FALSE(only_stores(compaction(false, kLoad)));
  EXPECT_FALSE(compaction(true, kStore).empty());
  // A read after the flag is not covered.
  EXPECT_FALSE(run([&](BlockChecker& b, std::uint32_t i) {
                 if (i == 0) b.global(one(kAtomicStore, counter));
                 if (i == 0) b.global(row(kLoad, data));
                 if (i == 1) b.global(one(kAtomicLoad, counter));
                 if (i == 1) b.global(row(kStore, data));
               }).empty());
  // A fence after the flag still releases what was written before the flag.
  EXPECT_THAT(run([&](BlockChecker& b, std::uint32_t i) {
                if (i == 0) {
                  b.fence();
                  b.global(row(kStore, data));
                  b.global(one(kAtomicStore, counter));
                  b.fence();
                  b.global(one(kAtomicStore, counter + 4));
                } else if (i == 1) {
                  b.global(one(kAtomicLoad, counter + 4));
                  b.global(row(kLoad, data));
                }
              }),
              IsEmpty());
}

TEST_F(GlobalRaces, OrderPassesOnThroughOtherBlocks) {
  const auto findings = run([&](BlockChecker& b, std::uint32_t i) {
    if (i > 0) b.global(one(kAtomicLoad, counter + 4 * (i - 1)));
    if (i > 1) b.global(one(kLoad, data + 4 * (i - 2)).at(1));
    b.global(one(kStore, data + 4 * i));
    b.fence();
    b.global(one(kAtomicStore, counter + 4 * i));
  });
  EXPECT_THAT(findings, IsEmpty());
}

TEST_F(GlobalRaces, SpinLock) {
  for (const bool fenced : {true, false}) {
    const auto findings = run([&](BlockChecker& b, std::uint32_t) {
      b.global(one(kAtomic, counter));  // atomicCAS
      b.global(one(kLoad, data));
      b.global(one(kStore, data));
      if (fenced) b.fence();
      b.global(one(kAtomic, counter));  // atomicExch
    });
    EXPECT_EQ(findings.empty(), fenced);
  }
}

// Co-resident blocks that take turns.
class GridSync : public GlobalRaces {
 protected:
  // Counts the races if block `impatient` skips the wait of round 3; with kBlocks no block does.
  std::size_t races(std::uint32_t impatient) {
    LaunchChecker launch(memory, kBlocks, {.concurrent = false});
    std::vector<std::unique_ptr<BlockChecker>> blocks;
    for (std::uint32_t i = 0; i < kBlocks; ++i) {
      blocks.push_back(std::make_unique<BlockChecker>(launch, 0, 1));
      blocks.back()->begin_block(i);
    }
    for (std::uint32_t round = 0; round < 5; ++round) {
      for (std::uint32_t i = 0; i < kBlocks; ++i) {
        const std::uint64_t from = round % 2 == 0 ? data : other, to = data + other - from;
        blocks[i]->global(row(kLoad, from + 128 * ((i + 1) % kBlocks)));
        blocks[i]->global(row(kLoad, from + 128 * i + 64));
        blocks[i]->global(row(kStore, to + 128 * i));
        blocks[i]->fence();
        blocks[i]->global(one(kAtomic, counter));
      }
      for (std::uint32_t i = 0; i < kBlocks; ++i) {
        if (round == 3 && i == impatient) continue;
        blocks[i]->global(one(kAtomicLoad, counter));
        blocks[i]->fence();
      }
    }
    return launch.findings().size();
  }
};

TEST_F(GridSync, OrdersRounds) { EXPECT_EQ(races(kBlocks), 0u); }

TEST_F(GridSync, ABlockThatDoesNotWait) { EXPECT_NE(races(2), 0u); }

TEST_F(GlobalRaces, UninitialisedReadsOfWhatAnotherBlockWritesAreRaces) {
  // Whichever block comes first.
  auto order = in_order();
  for (int reversed = 0; reversed < 2; ++reversed) {
    const std::uint64_t a = memory.allocate(256).value(), fresh = memory.allocate(256).value();
    const auto findings = run(
        [&](BlockChecker& b, std::uint32_t i) {
          if (i == 0) b.global(row(kStore, a));
          if (i == 1) b.global(row(kLoad, a));
          if (i >= 2) b.global(row(AccessKind::reduction, fresh).at(7));
        },
        order);
    ASSERT_EQ(findings.size(), 2u);
    EXPECT_EQ(findings[0].kind, FindingKind::uninitialised);
    EXPECT_EQ(findings[0].pc, 7u);
    EXPECT_EQ(findings[0].block, 2u);
    EXPECT_EQ(findings[0].count, 32u);
    EXPECT_EQ(findings[1].kind, FindingKind::global_race);
    std::reverse(order.begin(), order.end());
  }
}

TEST_F(GlobalRaces, UninitialisedHistogram) {
  auto order = in_order();
  for (int reversed = 0; reversed < 2; ++reversed) {
    const std::uint64_t a = memory.allocate(256).value();
    const auto findings =
        run([&](BlockChecker& b,
                std::uint32_t i) { b.global(row(AccessKind::reduction, a).at(10 + i)); },
            order);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].block, 0u);
    EXPECT_EQ(findings[0].pc, 10u);
    std::reverse(order.begin(), order.end());
  }
}

TEST_F(GlobalRaces, LaunchesOfManyBlocks) {
  // The blocks use up all segment numbers from one launch to the next.
  for (int i = 0; i < 3; ++i) {
    LaunchChecker launch(memory, kMaxCheckedBlocks, {});
    BlockChecker block(launch, 0, 1);
    for (const std::uint64_t b : {std::uint64_t{0}, kMaxCheckedBlocks - 1}) {
      block.begin_block(b);
      block.global(row(kStore, data + (b == 0 ? 0 : 124)));
    }
    ASSERT_EQ(launch.findings().size(), 1u);
    EXPECT_EQ(launch.findings()[0].count, 1u);
    EXPECT_EQ(launch.findings()[0].block, kMaxCheckedBlocks - 1);
  }
  EXPECT_THROW(LaunchChecker(memory, kMaxCheckedBlocks + 1, {}), std::length_error);
}

TEST_F(GlobalRaces, FreedMemoryIsForgotten) {
  const std::uint64_t big = array(2 << 20);
  EXPECT_EQ(run([&](BlockChecker& b, std::uint32_t) { b.global(row(kStore, big)); }).size(), 1u);
  memory.free(big);
  EXPECT_THAT(run([&](BlockChecker& b, std::uint32_t i) { b.global(row(kStore, data + 128 * i)); }),
              IsEmpty());
}

// Random accesses to words by up to four blocks in turns, with fences and atomic operations,
// checked against the definition.
TEST_F(GlobalRaces, AgreesWithHappensBeforeAtRandom) {
  std::mt19937 random(3);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  int racy = 0, clean = 0, missed = 0;
  for (int program = 0; program < 4000; ++program) {
    const bool sync = program % 2 == 0;
    constexpr std::uint32_t kSome = 4, kWords = 3;
    LaunchChecker launch(memory, kSome, {});
    std::vector<std::unique_ptr<BlockChecker>> blocks;
    std::vector<std::vector<std::uint32_t>> clock(kSome, std::vector<std::uint32_t>(kSome));
    std::vector<std::vector<std::uint32_t>> fenced = clock;
    std::vector<std::vector<std::uint32_t>> released(2, std::vector<std::uint32_t>(kSome));
    const auto join = [](auto& to, const auto& from) {
      for (std::uint32_t i = 0; i < kSome; ++i) to[i] = std::max(to[i], from[i]);
    };
    for (std::uint32_t i = 0; i < kSome; ++i) {
      blocks.push_back(std::make_unique<BlockChecker>(launch, 0, 1));
      blocks[i]->begin_block(i);
      clock[i][i] = 1;
    }
    struct Event {
      std::uint32_t block, clock, word;
      bool write;
      std::uint32_t flags;  // flags that the block had stored by then
    };
    // How many flags each block has stored, and how many of them each other block follows: reads
    // before those flags are ordered.
    std::vector<std::uint32_t> flags(kSome);
    std::vector<std::vector<std::uint32_t>> follows(kSome, flags), told(2, flags);
    std::vector<Event> events;
    bool race = false;
    const std::uint32_t steps = 4 + below(30), order_rate = 2 + below(7), write_rate = 1 + below(9);
    for (std::uint32_t step = 0; step < steps && !race; ++step) {
      const std::uint32_t b = below(kSome);
      if (sync && below(10) < order_rate) {
        const std::uint32_t flag = below(2);
        switch (below(3)) {
          case 0:
            blocks[b]->fence();
            fenced[b] = clock[b];
            ++clock[b][b];
            break;
          case 1:
            blocks[b]->global(one(kAtomicStore, counter + 4 * flag));
            join(released[flag], fenced[b]);
            follows[b][b] = ++flags[b];
            join(told[flag], follows[b]);
            break;
          default:
            blocks[b]->global(one(kAtomicLoad, counter + 4 * flag));
            join(clock[b], released[flag]);
            join(follows[b], told[flag]);
        }
        continue;
      }
      const std::uint32_t w = below(kWords);
      const bool write = below(10) < write_rate;
      blocks[b]->global(one(write ? kStore : kLoad, data + 4 * w).at(step));
      for (const Event& e : events) {
        const bool read_before = !e.write && follows[b][e.block] > e.flags;
        race |= e.word == w && e.block != b && (e.write || write) && clock[b][e.block] < e.clock &&
                !read_before;
      }
      events.push_back({b, clock[b][b], w, write, flags[b]});
    }
    const bool found = !launch.findings().empty();
    if (found || !sync) {
      ASSERT_EQ(found, race) << "program " << program;
    }
    missed += race && !found ? 1 : 0;
    ++(race ? racy : clean);
  }
  EXPECT_GT(racy, 1000);
  EXPECT_GT(clean, 300);
  // The missed races are those with more than two blocks at one word.
  EXPECT_LT(missed, racy / 50);
}

}  // namespace
}  // namespace assay::sim
