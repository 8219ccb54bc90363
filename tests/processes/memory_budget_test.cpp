#include "processes/memory_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "assay/error.h"

namespace assay::processes {
namespace {

TEST(MemoryBudget, IsPartOfWhatThereIs) {
  EXPECT_GT(memory_budget(), 0u);
  EXPECT_EQ(memory_budget(), memory_budget());
}

TEST(MemoryBudget, WhoHasNothingWaitsForOthers) {
  std::optional<MemoryShare> all(std::in_place, memory_budget());
  std::atomic<bool> granted{false};
  std::jthread other([&] {
    const MemoryShare mine(1);
    granted = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(granted);
  all.reset();
  other.join();
  EXPECT_TRUE(granted);
}

TEST(MemoryBudget, MoreThanThereIsIsGrantedToWhoIsAlone) {
  const MemoryShare all(memory_budget() + 1);
}

TEST(MemoryBudget, OneThreadsOwnWorkersAreBounded) {
  std::vector<std::unique_ptr<MemoryShare>> shares;
  for (int i = 0; i < 3; ++i) shares.push_back(std::make_unique<MemoryShare>(memory_budget()));
  EXPECT_THROW(MemoryShare(1), Error);
  shares.clear();
  for (int i = 0; i < 10; ++i)
    shares.push_back(std::make_unique<MemoryShare>(memory_budget() / 20));
}

}  // namespace
}  // namespace assay::processes
