#include "measure/caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace assay {
namespace {

constexpr std::int64_t kMega = 1 << 20;

TEST(MemoryBeyondCaches, HasHalvesOfFourTimesTheLastLevelWithinTheirBounds) {
  with_memory_beyond_caches([](std::span<std::uint64_t> words) {
    EXPECT_EQ(words.size_bytes() / 2, static_cast<std::size_t>(std::clamp(
                                          4 * last_level_cache_bytes(), 64 * kMega, 256 * kMega)));
  });
}

TEST(MemoryBeyondCaches, IsForOneCallerAtATime) {
  std::atomic<int> callers{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      with_memory_beyond_caches([&](std::span<std::uint64_t>) {
        most = std::max<int>(most, ++callers);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --callers;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

TEST(FlushCaches, TouchesEveryWordOfTwiceTheLastLevel) {
  with_memory_beyond_caches([](std::span<std::uint64_t> words) { std::ranges::fill(words, 7); });
  flush_caches();
  const std::int64_t bytes = std::clamp(2 * last_level_cache_bytes(), 32 * kMega, 160 * kMega);
  with_memory_beyond_caches([&](std::span<std::uint64_t> words) {
    const auto swept = words.first(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t));
    EXPECT_TRUE(std::ranges::all_of(swept, [](std::uint64_t word) { return word == 8; }));
  });
}

}  // namespace
}  // namespace assay
