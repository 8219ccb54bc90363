// Races between blocks of a cluster, against a witness that follows every path of a graph of events.
#include "sim/memory/cluster_races.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace assay::sim {
namespace {

constexpr std::uint32_t kBlocks = 3, kWords = 4;
constexpr std::array<std::uint64_t, kBlocks> kIndices{6, 7, 8};

WarpAccess one_lane(AccessKind kind, const std::uint64_t* address, std::uint32_t bytes = 4) {
  return {kind, bytes, 1, address, nullptr, 0, 0};
}

struct Event {
  enum class What : std::uint8_t { access, arrive, wait } what{};
  std::uint32_t rank = 0, barrier = 0;  // the number of the barrier, from 1
  std::uint32_t owner = 0, word = 0;
  AccessKind kind{};
};

bool conflict(const Event& a, const Event& b) {
  return a.what == Event::What::access && b.what == a.what && a.rank != b.rank &&
         a.owner == b.owner && a.word == b.word && (writes(a.kind) || writes(b.kind)) &&
         !(is_atomic(a.kind) && is_atomic(b.kind));
}

// Whether two conflicting accesses are not connected by program order and barriers.
bool has_race(const std::vector<Event>& events) {
  const std::size_t n = events.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      const bool edge =
          events[i].rank == events[j].rank ||
          (events[i].what == Event::What::arrive && events[j].what == Event::What::wait &&
           events[i].barrier == events[j].barrier);
      if (!edge) continue;
      before[i][j] = true;
      for (std::size_t k = 0; k < i; ++k) before[k][j] = before[k][j] || before[k][i];
    }
    for (std::size_t i = 0; i < j; ++i) {
      if (conflict(events[i], events[j]) && !before[i][j]) return true;
    }
  }
  return false;
}

// One warp a block. All blocks pass the first barrier at once; then they act in any order.
class Schedule {
 public:
  explicit Schedule(unsigned seed) : random_(seed) {
    races_.begin(kIndices);
    for (std::uint32_t r = 0; r < kBlocks; ++r) arrive(r);
    for (std::uint32_t r = 0; r < kBlocks; ++r) wait(r);
  }

  void run(int steps) {
    for (int s = 0; s < steps; ++s) {
      const std::uint32_t rank = below(kBlocks);
      if (below(3) != 0) {
        access(rank);
      } else if (!arrived_[rank]) {
        arrive(rank);
      } else if (completed_ == passed_[rank] + 1) {
        wait(rank);
      }
    }
  }

  bool found = false;
  std::vector<Event> events;

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void access(std::uint32_t rank) {
    constexpr std::array<AccessKind, 4> kKinds{AccessKind::load, AccessKind::load,
                                               AccessKind::store, AccessKind::reduction};
    const Event e{Event::What::access, rank, 0, below(kBlocks), below(kWords), kKinds[below(4)]};
    const std::uint64_t address = 4 * e.word;
    const auto result = races_.access(e.owner, rank, one_lane(e.kind, &address));
    if (result) {
      EXPECT_EQ(result->fault, ClusterRaces::Fault::unordered);
      found = true;
    }
    events.push_back(e);
  }
  void arrive(std::uint32_t rank) {
    races_.arrive(rank, 0);
    events.push_back({Event::What::arrive, rank, completed_ + 1});
    arrived_[rank] = true;
    if (++arrivals_ < kBlocks) return;
    races_.complete();
    arrivals_ = 0;
    ++completed_;
  }
  void wait(std::uint32_t rank) {
    races_.wait(rank, 0);
    events.push_back({Event::What::wait, rank, ++passed_[rank]});
    arrived_[rank] = false;
  }

  std::mt19937 random_;
  ClusterRaces races_{kBlocks, 1, 4 * kWords};
  std::array<bool, kBlocks> arrived_{};
  std::array<std::uint32_t, kBlocks> passed_{};
  std::uint32_t arrivals_ = 0, completed_ = 0;
};

TEST(ClusterRaces, FindARaceExactlyIfThereIsOne) {
  int racy = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Schedule s(seed);
    s.run(4 + static_cast<int>(seed % 25));
    const bool expected = has_race(s.events);
    ASSERT_EQ(s.found, expected) << "seed " << seed;
    racy += expected ? 1 : 0;
  }
  EXPECT_GT(racy, 500);
  EXPECT_LT(racy, 2500);
}

class ClusterRacesTest : public testing::Test {
 protected:
  void SetUp() override { begin(); }
  void begin() {
    races.begin(kIndices);
    pass();
  }
  void pass() {
    for (std::uint32_t r = 0; r < kBlocks; ++r) races.arrive(r, 0);
    races.complete();
    for (std::uint32_t r = 0; r < kBlocks; ++r) races.wait(r, 0);
  }
  auto access(std::uint32_t owner, std::uint32_t rank, AccessKind kind, std::uint64_t address = 0,
              std::uint32_t bytes = 4) {
    return races.access(owner, rank, one_lane(kind, &address, bytes));
  }

  ClusterRaces races{kBlocks, 1, 4 * kWords};
};

TEST_F(ClusterRacesTest, NamesTheOtherAccess) {
  EXPECT_FALSE(access(1, 0, AccessKind::store));
  const auto found = access(1, 1, AccessKind::load);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->other.block, 6u);
  EXPECT_EQ(found->other.kind, AccessKind::store);
}

TEST_F(ClusterRacesTest, PartsOfAWordAreDistinct) {
  EXPECT_FALSE(access(1, 0, AccessKind::store, 0, 2));
  EXPECT_FALSE(access(1, 2, AccessKind::store, 2, 2));
  EXPECT_FALSE(access(1, 2, AccessKind::store, 8, 8));
  EXPECT_TRUE(access(1, 0, AccessKind::load, 0, 16));
}

TEST_F(ClusterRacesTest, ThreadsOfOneBlockDoNotRaceHere) {
  EXPECT_FALSE(access(1, 0, AccessKind::store));
  EXPECT_FALSE(access(1, 0, AccessKind::store));
}

TEST_F(ClusterRacesTest, TheNextClusterKnowsNothingOfThis) {
  EXPECT_FALSE(access(1, 0, AccessKind::store));
  begin();
  EXPECT_FALSE(access(1, 1, AccessKind::load));
}

TEST_F(ClusterRacesTest, OtherOrderEndsTheChecks) {
  EXPECT_FALSE(access(1, 0, AccessKind::store));
  races.order_otherwise();
  EXPECT_FALSE(access(1, 1, AccessKind::load));
  EXPECT_FALSE(races.end(1));
  const auto found = access(1, 0, AccessKind::load);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, ClusterRaces::Fault::ended);
}

TEST_F(ClusterRacesTest, ABlockBeginsAtTheFirstBarrier) {
  races.begin(kIndices);
  EXPECT_FALSE(access(1, 1, AccessKind::store));
  const auto found = access(1, 0, AccessKind::load);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fault, ClusterRaces::Fault::unborn);
}

TEST_F(ClusterRacesTest, ABlockEndsAfterTheLastBarrier) {
  EXPECT_FALSE(access(1, 0, AccessKind::load));
  pass();
  EXPECT_FALSE(races.end(1));
  EXPECT_FALSE(access(2, 0, AccessKind::load));
  const auto found = races.end(2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->block, 6u);
}

}  // namespace
}  // namespace assay::sim
