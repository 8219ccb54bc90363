// Findings and counters do not depend on the number of host threads, nor on the order of blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "sim/memory/checker.h"
#include "sim/memory/warp_support.h"

namespace assay::sim {
namespace {

constexpr std::uint32_t kBlocks = 96;

struct Outcome {
  std::vector<RawFinding> findings;
  Counters counters;
  bool operator==(const Outcome&) const = default;
};

class Threads : public ::testing::Test {
 protected:
  // Fresh memory each time, so that what should be uninitialised is.
  struct Arrays {
    GlobalMemory memory{1 << 22};
    std::uint64_t input = allocate(true), output = allocate(false), racy = allocate(true),
                  fresh = allocate(false), counts = allocate(true);

    std::uint64_t allocate(bool initialised) {
      const std::uint64_t a = memory.allocate(1 << 17).value();
      if (initialised) memory.mark_initialised(a, 1 << 17);
      return a;
    }
  };

  static void body(BlockChecker& b, std::uint32_t block, const Arrays& m) {
    std::mt19937 random(block);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    for (std::uint32_t step = 0; step < 120; ++step) {
      const auto warp = static_cast<std::uint32_t>(below(2));
      const std::uint32_t bytes = 1u << below(5);
      const AccessKind kind = below(2) == 0 ? AccessKind::load : AccessKind::store;
      const std::uint64_t scattered = below(64);
      Lanes a;
      switch (below(8)) {
        case 0:  // all blocks read it, in rows that do not start on a boundary
          a = row(AccessKind::load, m.input + 4 * below(9000), 4);
          break;
        case 1: a = row(kind, m.output + 1024 * block + bytes * below(16), bytes); break;
        case 2:  // a few words that many blocks race for
          a = lanes(kind, bytes, [&](unsigned) { return m.racy + bytes * below(4000 / bytes); });
          break;
        case 3: a = row(kind, m.racy + 8192 + 128 * below(64), bytes); break;
        case 4: a = row(AccessKind::load, m.fresh + 64 * below(300), bytes); break;
        case 5: a = strided(AccessKind::reduction, 4, m.counts + 4 * scattered, 64); break;
        case 6:
          a = strided(kind, 4, m.fresh + 65536 + 512 * block + 4 * scattered, 0).only(6);
          break;
        default:
          a = strided(kind, bytes, bytes * below(8), bytes * below(3)).at(step % 11).of_warp(warp);
          if (below(3) == 0) b.barrier(3);
          b.shared(a);
          continue;
      }
      if (below(3) == 0) a.mask &= static_cast<std::uint32_t>(random()) | (a.mask & -a.mask);
      EXPECT_TRUE(b.global(a.at(step % 11).of_warp(warp)));
    }
  }

  static void add(Counters& sum, const Counters& c) {
    sum.global_load_bytes += c.global_load_bytes;
    sum.global_store_bytes += c.global_store_bytes;
    sum.global_load_sectors += c.global_load_sectors;
    sum.global_store_sectors += c.global_store_sectors;
    sum.global_atomics += c.global_atomics;
    sum.atomic_sectors += c.atomic_sectors;
    sum.atomic_passes += c.atomic_passes;
    sum.shared_loads += c.shared_loads;
    sum.shared_stores += c.shared_stores;
    sum.shared_passes += c.shared_passes;
    sum.shared_replays += c.shared_replays;
    sum.shared_bytes += c.shared_bytes;
  }

  static Outcome run(unsigned threads, const std::vector<std::uint32_t>& order) {
    const Arrays arrays;
    LaunchChecker launch(const_cast<GlobalMemory&>(arrays.memory), kBlocks,
                         {.concurrent = threads > 1});
    std::atomic<std::uint32_t> next{0};
    std::vector<Counters> counters(threads);
    const auto work = [&](unsigned t) {
      BlockChecker block(launch, 1024, 2);
      for (std::uint32_t i = next++; i < kBlocks; i = next++) {
        block.begin_block(order[i]);
        body(block, order[i], arrays);
      }
      counters[t] = block.counters();
    };
    std::vector<std::thread> pool;
    for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work, t);
    work(0);
    for (auto& t : pool) t.join();
    Outcome result{launch.findings(), {}};
    for (const Counters& c : counters) add(result.counters, c);
    return result;
  }
};

TEST_F(Threads, TheOutcomeIsTheSame) {
  std::vector<std::uint32_t> order(kBlocks);
  std::iota(order.begin(), order.end(), 0u);
  const Outcome expected = run(1, order);
  EXPECT_GT(expected.findings.size(), 50u);
  EXPECT_TRUE(std::any_of(expected.findings.begin(), expected.findings.end(), [](const auto& f) {
    return f.kind == FindingKind::global_race && !f.shared;
  }));
  std::mt19937 random(5);
  for (int i = 0; i < 12; ++i) {
    const Outcome o = run(4, order);
    EXPECT_EQ(o.counters, expected.counters);
    ASSERT_EQ(o.findings.size(), expected.findings.size());
    for (std::size_t f = 0; f < o.findings.size(); ++f) {
      ASSERT_EQ(o.findings[f], expected.findings[f]) << "finding " << f;
    }
    std::shuffle(order.begin(), order.end(), random);
    ASSERT_EQ(run(1, order), expected);
  }
}

}  // namespace
}  // namespace assay::sim
