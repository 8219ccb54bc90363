#include "assay/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace assay {
namespace {

// Restores the thread count, which is per thread.
class ParallelTest : public ::testing::Test {
 protected:
  void TearDown() override { set_parallel_threads(0); }
};

TEST_F(ParallelTest, EveryIndexIsVisitedOnce) {
  for (const int threads : {1, 2, 5}) {
    set_parallel_threads(threads);
    for (const std::int64_t n : {1, 2, 4, 5, 6, 1000, 1003}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
      parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& v : visits) ASSERT_EQ(v, 1) << "n " << n << ", threads " << threads;
    }
  }
}

TEST_F(ParallelTest, NothingToDoMakesNoCall) {
  parallel_for(0, 1, [](std::int64_t, std::int64_t) { FAIL(); });
  parallel_for(-3, 1, [](std::int64_t, std::int64_t) { FAIL(); });
}

TEST_F(ParallelTest, ChunksAreNoSmallerThanTheGrain) {
  set_parallel_threads(4);
  std::mutex mutex;
  std::vector<std::int64_t> sizes;
  parallel_for(250, 100, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    sizes.push_back(end - begin);
  });
  EXPECT_EQ(sizes.size(), 2u);
  for (const std::int64_t size : sizes) EXPECT_GE(size, 100);
}

TEST_F(ParallelTest, AsManyThreadsAsAsked) {
  set_parallel_threads(3);
  EXPECT_EQ(parallel_threads(), 3);
  std::atomic<int> chunks{0};
  parallel_for(300, 1, [&](std::int64_t, std::int64_t) { ++chunks; });
  EXPECT_EQ(chunks, 3);
}

TEST_F(ParallelTest, CoresAreThoseOfTheAffinity) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(available_cores(), CPU_COUNT(&set));
}

TEST_F(ParallelTest, TheCountIsTheThreadsOwnAndLoopsDoNotNest) {
  set_parallel_threads(2);
  std::jthread([] { EXPECT_EQ(parallel_threads(), available_cores()); });
  parallel_for(2, 1, [](std::int64_t, std::int64_t) { EXPECT_EQ(parallel_threads(), 1); });
  EXPECT_EQ(parallel_threads(), 2);
}

TEST_F(ParallelTest, AnExceptionOfAnyChunkArrivesAfterAllHaveEnded) {
  set_parallel_threads(4);
  for (const std::int64_t guilty : {0, 399}) {
    std::atomic<int> done{0};
    EXPECT_THROW(parallel_for(400, 1,
                              [&](std::int64_t begin, std::int64_t end) {
                                if (begin <= guilty && guilty < end) throw std::runtime_error("no");
                                ++done;
                              }),
                 std::runtime_error);
    EXPECT_EQ(done, 3);
  }
}

}  // namespace
}  // namespace assay
