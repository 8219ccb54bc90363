#include "device/watchdog.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "sim/device.h"
#include "wire/device.h"

namespace assay::device {
namespace {

void spin(double seconds) {
  const std::uint64_t end = sim::processor_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  while (sim::processor_ns() < end) {
  }
}

TEST(Watchdog, EndsAProcessThatIsPastItsDeadline) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static std::atomic<std::uint64_t> deadline{sim::processor_ns() + 1};
        watch(deadline);
        for (;;) spin(1);
      },
      ::testing::ExitedWithCode(kOutOfTime), "");
}

TEST(Watchdog, LetsOneBeThatIsIdle) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static std::atomic<std::uint64_t> deadline{0};
        watch(deadline);
        spin(0.5);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        std::_Exit(3);
      },
      ::testing::ExitedWithCode(3), "");
}

TEST(Watchdog, TheAllowanceGrowsWithTheLimit) {
  EXPECT_LT(allowance_seconds(1'000'000), 6);
  EXPECT_GT(allowance_seconds(1'000'000'000), allowance_seconds(500'000'000) + 10);
}

}  // namespace
}  // namespace assay::device
