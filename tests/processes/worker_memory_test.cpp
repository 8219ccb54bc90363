// Memory limits, and the accounting of a process at hand. worker_process_test.cpp tests those of
// workers.
#include "processes/worker_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "spec/spec.h"

namespace assay::processes {
namespace {

constexpr std::uint64_t kMega = 1 << 20, kArenas = 32 * kMega;

class WorkerMemoryTest : public ::testing::Test {
 protected:
  WorkerMemoryTest() {
    spec_.limits.memory_bytes = 16 * kMega;
    settings_.spec = &spec_;
  }
  sandbox::Limits limits(const Layout* windows) const {
    sandbox::Program program;
    WorkerMemory memory(settings_, kArenas, false);
    memory.limit(program, windows);
    return program.limits;
  }

  ChallengeSpec spec_;
  WorkerSettings settings_;
};

TEST_F(WorkerMemoryTest, AddressSpaceHasRoomForArenasLibrariesAndTwiceTheLimit) {
  const sandbox::Limits plain = limits(nullptr);
  EXPECT_EQ(plain.address_space, kArenas + 512 * kMega + 2 * 16 * kMega);
  EXPECT_EQ(plain.data, 0);
}

TEST_F(WorkerMemoryTest, WindowsRaiseTheLimitOnAddressSpaceAndBoundPrivateMemory) {
  Layout layout;
  layout.windows = {{.bytes = 1 << 30}};
  const sandbox::Limits plain = limits(nullptr), windowed = limits(&layout);
  EXPECT_EQ(windowed.address_space, plain.address_space + layout.window_bytes());
  EXPECT_EQ(windowed.data, plain.address_space - kArenas);
}

TEST_F(WorkerMemoryTest, PagesOfTheCaseAndItsCallbacksAreNoGrowth) {
  WorkerMemory memory(settings_, kArenas, false);
  EXPECT_GT(memory.peak_growth(::getpid()), 0);
  memory.count_callback({0, std::size_t{1} << 40}, {});
  EXPECT_EQ(memory.peak_growth(::getpid()), 0);
  memory.set_case({}, {});
  EXPECT_GT(memory.peak_growth(::getpid()), 0) << "another case has had no callbacks yet";
}

TEST_F(WorkerMemoryTest, NothingRanOutWithoutALimit) {
  EXPECT_FALSE(WorkerMemory(settings_, kArenas, false).ran_out());
}

}  // namespace
}  // namespace assay::processes
