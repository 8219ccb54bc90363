// Races between operations: histories of bytes, with clocks that the test sets.
#include "sim/memory/stream_races.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sim/address_map.h"
#include "sim/memory/warp_support.h"

namespace assay::sim {
namespace {

constexpr std::uint64_t kBegin = kGlobalRange.begin + 256;
constexpr auto kRead = TouchKind::read, kWrite = TouchKind::write, kAtomic = TouchKind::atomic;

std::string line(std::uint32_t id) { return "a.cu:" + std::to_string(id); }

class Races : public testing::Test {
 protected:
  // Begins the next operation of a stream; `clock` is what it knows of other streams.
  void begin(std::uint32_t stream, std::uint32_t time, Clock clock, std::string name = "kernel") {
    clock.resize(std::max<std::size_t>(clock.size(), stream + 1));
    clock[stream] = time;
    races_.begin({stream, time, std::move(clock), "call", "stream " + std::to_string(stream)},
                 std::move(name));
  }
  void touch(std::uint64_t at, std::uint64_t bytes, TouchKind kind, std::uint32_t id = 1) {
    races_.touch(kBegin + at, bytes, kind, id, line);
  }
  std::size_t found() { return races_.take().size(); }

  StreamRaces races_;
};

TEST_F(Races, AWriteAndAReadThatNothingOrders) {
  begin(1, 1, {}, "produce");
  touch(0, 64, kWrite, 7);
  EXPECT_EQ(found(), 0u);
  begin(2, 1, {}, "consume");
  touch(16, 4, kRead, 12);
  const auto all = races_.take();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].access.name, "consume");
  EXPECT_EQ(all[0].access.place, "a.cu:12");
  EXPECT_EQ(all[0].access.stream, "stream 2");
  EXPECT_EQ(all[0].access.kind, kRead);
  EXPECT_EQ(all[0].other.name, "produce");
  EXPECT_EQ(all[0].other.place, "a.cu:7");
  EXPECT_EQ(all[0].other.kind, kWrite);
  EXPECT_EQ(all[0].address, kBegin + 16);
  EXPECT_EQ(all[0].bytes, 4u);
}

TEST_F(Races, WhichKindsRace) {
  const TouchKind kinds[] = {kRead, kAtomic, kWrite};
  const bool races[3][3] = {{false, true, true}, {true, false, true}, {true, true, true}};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const std::uint64_t at = 64 * (3 * i + j);
      begin(1, 1, {});
      touch(at, 4, kinds[i]);
      begin(2, 1, {});
      touch(at, 4, kinds[j]);
      EXPECT_EQ(found(), races[i][j] ? 1u : 0u) << i << " " << j;
    }
  }
}

TEST_F(Races, WhatTheClockKnowsIsNoRace) {
  begin(1, 5, {});
  touch(0, 64, kWrite);
  begin(2, 1, {0, 4});
  touch(0, 4, kWrite);
  EXPECT_EQ(found(), 1u);
  begin(1, 6, {0, 0, 1});
  touch(0, 64, kWrite);
  begin(2, 2, {0, 6});
  touch(0, 64, kWrite);
  EXPECT_EQ(found(), 0u);
}

TEST_F(Races, DisjointBytesAreFine) {
  begin(1, 1, {});
  touch(0, 33, kWrite);
  begin(2, 1, {});
  touch(33, 31, kWrite);
  EXPECT_EQ(found(), 0u);
  begin(3, 1, {});
  touch(32, 2, kRead);
  EXPECT_EQ(found(), 2u) << "one byte of each";
}

TEST_F(Races, EveryReaderCounts) {
  begin(1, 1, {});
  touch(0, 8, kRead, 1);
  begin(2, 1, {});
  touch(0, 8, kRead, 2);
  begin(3, 1, {0, 1});
  touch(0, 8, kWrite, 3);
  const auto all = races_.take();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].other.stream, "stream 2");
}

TEST_F(Races, AWriteStandsForWhatWasBeforeIt) {
  begin(1, 1, {});
  touch(0, 8, kRead);
  begin(2, 1, {});
  touch(0, 8, kWrite);
  EXPECT_EQ(found(), 1u);
  begin(3, 1, {});
  touch(0, 8, kWrite);
  EXPECT_EQ(found(), 1u) << "with the write alone";
}

// The read precedes its own stream's atomic operation, but not the other stream's.
TEST_F(Races, AReadIsNotForgottenForAnUpdateAfterIt) {
  begin(1, 1, {});
  touch(0, 4, kRead);
  begin(1, 2, {});
  touch(0, 4, kAtomic);
  begin(2, 1, {});
  touch(0, 4, kAtomic);
  EXPECT_EQ(found(), 1u);
}

TEST_F(Races, AnOperationDoesNotRaceWithItself) {
  begin(1, 1, {});
  touch(0, 64, kRead);
  touch(32, 64, kWrite);
  EXPECT_EQ(found(), 0u);
}

TEST_F(Races, OneFindingForEachPairOfAccesses) {
  begin(1, 1, {});
  for (std::uint64_t i = 0; i < 8; ++i) touch(16 * i, 4, kWrite);
  begin(2, 1, {});
  touch(0, 128, kRead);
  const auto all = races_.take();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].count, 8u);
}

TEST_F(Races, ForgottenRangesHaveNoHistory) {
  begin(1, 1, {});
  touch(0, 64, kWrite);
  races_.forget(kBegin + 16, 16);
  begin(2, 1, {});
  touch(16, 16, kWrite);
  EXPECT_EQ(found(), 0u);
  touch(12, 8, kWrite, 2);
  EXPECT_EQ(found(), 1u);
}

TEST_F(Races, AllMayBeForgotten) {
  begin(1, 1, {});
  touch(0, 64, kWrite);
  races_.forget(kBegin, 64);
  EXPECT_EQ(races_.entries(), 0u);
  touch(0, 64, kWrite);
  begin(2, 1, {});
  touch(0, 4, kRead);
  EXPECT_EQ(found(), 1u);
}

TEST_F(Races, NeighboursWithOneHistoryAreOneEntry) {
  for (std::uint32_t t = 1; t < 100; ++t) {
    begin(1, t, {});
    for (std::uint64_t i = 0; i < 64; ++i) touch(4 * i, 4, kWrite);
  }
  EXPECT_LE(races_.entries(), 2u);
}

// Histories that are no longer used are freed, and those in use stay correct.
TEST_F(Races, ManyOperationsLater) {
  begin(1, 1, {});
  touch(1000, 4, kWrite, 9);
  for (std::uint32_t t = 2; t < 200'000; ++t) {
    begin(1, t, {});
    touch(0, 4, kWrite);
  }
  begin(2, 1, {0, 199'999});
  touch(0, 4, kRead);
  EXPECT_EQ(found(), 0u);
  begin(3, 1, {});
  touch(1000, 4, kRead);
  const auto all = races_.take();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].other.place, "a.cu:9");
}

TEST_F(Races, OfTooManyReadersTheOldestIsForgotten) {
  for (std::uint32_t s = 1; s <= StreamRaces::kMaxOthers + 1; ++s) {
    begin(s, 1, {});
    touch(0, 4, kRead);
  }
  begin(1000, 1, {});
  touch(0, 4, kWrite);
  const auto all = races_.take();
  ASSERT_EQ(all.size(), StreamRaces::kMaxOthers);
  EXPECT_EQ(all[0].other.stream, "stream 2");
}

TEST_F(Races, TooManyHistoriesAreForgotten) {
  begin(1, 1, {});
  for (std::uint64_t i = 0; i <= StreamRaces::kMaxEntries; ++i) touch(8 * i, 4, kWrite);
  EXPECT_LT(races_.entries(), StreamRaces::kMaxEntries / 2);
  begin(2, 1, {});
  touch(0, 4, kWrite);
  EXPECT_EQ(found(), 0u) << "missed, and nothing invented";
}

// Compared with a model that keeps every access to every byte: both find a program's first race in
// the same operation, or both find none.
TEST_F(Races, TheFirstRaceOfAnyProgramIsFound) {
  constexpr std::uint32_t kStreams = 4, kBytes = 24;
  struct Past {
    std::uint32_t stream, time;
    TouchKind kind;
  };
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  int raced = 0;
  for (std::uint64_t program = 0; program < 2000; ++program) {
    std::vector<Past> past[kBytes];
    std::vector<Clock> clocks(kStreams, Clock(kStreams));
    const std::uint64_t at = 4096 * program;
    for (int operation = 0; operation < 16; ++operation) {
      const std::uint32_t s = below(kStreams);
      for (const Clock& other : clocks) {
        if (below(8) == 0) continue;  // this stream does not wait for `other`
        for (std::uint32_t i = 0; i < kStreams; ++i)
          clocks[s][i] = std::max(clocks[s][i], other[i]);
      }
      begin(s, ++clocks[s][s], clocks[s]);
      bool race = false;
      std::uint32_t byte = below(kBytes / 2);
      for (int touches = 0; touches < 2 && byte < kBytes; ++touches) {
        const auto kind = static_cast<TouchKind>(below(8) == 0 ? 2 : below(2));
        const std::uint32_t bytes = 1 + below(std::min(kBytes - byte, 6u));
        touch(at + byte, bytes, kind, below(3));
        for (std::uint32_t b = byte; b < byte + bytes; ++b) {
          for (const Past& p : past[b]) {
            race |= p.time > clocks[s][p.stream] && (p.kind != kind || kind == kWrite);
          }
          past[b].push_back({s, clocks[s][s], kind});
        }
        byte += bytes + below(4);
      }
      ASSERT_EQ(found() != 0, race) << program << ", operation " << operation;
      if (race) {
        ++raced;
        break;
      }
    }
  }
  EXPECT_GT(raced, 500);
  EXPECT_LT(raced, 1500);
}

// --- footprints ---

class Accessed : public testing::Test {
 protected:
  void add(AccessKind kind, std::uint32_t bytes, std::uint32_t mask, std::uint64_t first,
           std::uint64_t stride, std::uint32_t pc) {
    std::uint64_t address[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) address[i] = kBegin + first + stride * i;
    WarpAccess a;
    a.kind = kind;
    a.bytes = bytes;
    a.mask = mask;
    a.address = address;
    a.pc = pc;
    footprint_.add(a, find_pattern(a));
  }
  // "0-128 write 3", relative to kBegin.
  std::vector<std::string> take() {
    std::vector<std::string> all;
    footprint_.take([&](const Footprint::Run& r) {
      const char* names[] = {"read", "atomic", "write"};
      all.push_back(std::to_string(r.begin - kBegin) + "-" + std::to_string(r.end - kBegin) + " " +
                    names[static_cast<int>(r.kind)] + " " + std::to_string(r.pc));
    });
    return all;
  }
  Footprint footprint_{std::uint64_t{1} << 24};
};

constexpr std::uint32_t kAll = ~std::uint32_t{0};

TEST_F(Accessed, NeighboursAreOneRun) {
  for (std::uint64_t i = 0; i < 100; ++i) add(AccessKind::load, 4, kAll, 128 * i, 4, 3);
  EXPECT_THAT(take(), testing::ElementsAre("0-12800 read 3"));
  EXPECT_THAT(take(), testing::IsEmpty());
}

TEST_F(Accessed, EveryByteIsExact) {
  add(AccessKind::store, 4, 0b101, 0, 8, 1);
  add(AccessKind::load, 1, 1, 33, 0, 2);
  EXPECT_THAT(take(), testing::ElementsAre("0-4 write 1", "16-20 write 1", "33-34 read 2"));
}

TEST_F(Accessed, TheStrongestKindCounts) {
  add(AccessKind::load, 4, kAll, 0, 4, 1);
  add(AccessKind::atomic, 4, 0xff, 0, 4, 2);
  add(AccessKind::store, 4, 0xf, 0, 4, 3);
  EXPECT_THAT(take(), testing::ElementsAre("0-16 write 3", "16-32 atomic 2", "32-128 read 1"));
}

TEST_F(Accessed, TheLowestInstructionIsTheExample) {
  add(AccessKind::load, 4, kAll, 0, 4, 9);
  add(AccessKind::load, 4, kAll, 0, 4, 5);
  add(AccessKind::load, 4, kAll, 0, 4, 7);
  EXPECT_THAT(take(), testing::ElementsAre("0-128 read 5"));
}

TEST_F(Accessed, FarApart) {
  add(AccessKind::store, 4, 0b11, 0, 5 << 20, 1);
  add(AccessKind::store, 32, kAll, 4000, 32, 2);
  EXPECT_THAT(take(),
              testing::ElementsAre("0-4 write 1", "4000-5024 write 2", "5242880-5242884 write 1"));
}

}  // namespace
}  // namespace assay::sim
