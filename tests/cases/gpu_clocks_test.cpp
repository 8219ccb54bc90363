#include "cases/gpu_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/lookup.h"

namespace assay::cases {
namespace {

using ::testing::IsEmpty;

using Reasons = std::vector<std::string>;

GpuState state(const Reasons& reasons, std::uint64_t power_ns = 0) {
  GpuState s;
  s.throttle_reasons = reasons;
  s.violation_ns = {{"power", power_ns}, {"thermal", 5}};
  return s;
}

TEST(GpuClocks, LowClocksOfAnIdleGpuAreNoThrottling) {
  EXPECT_FALSE(is_throttled(state({}), state({})));
  EXPECT_FALSE(is_throttled(state({}), state({"gpu_idle", "applications_clocks_setting"})));
  EXPECT_FALSE(is_throttled({}, {})) << "nothing is told";
}

TEST(GpuClocks, WhatHoldsThemDownIsSeenByReasonOrByItsTime) {
  EXPECT_TRUE(is_throttled(state({}), state({"gpu_idle", "sw_power_cap"})));
  EXPECT_TRUE(is_throttled(state({}), state({"hw_thermal_slowdown"})));
  EXPECT_TRUE(is_throttled(state({}, 7), state({"gpu_idle"}, 8))) << "over by the time one asks";
  EXPECT_FALSE(is_throttled(state({}, 7), state({}, 7))) << "that was before";
  EXPECT_FALSE(is_throttled(state({"sw_power_cap"}), state({})));
  EXPECT_FALSE(is_throttled({}, state({}, 8))) << "nobody knows since when";
}

TEST(GpuClocks, RangesAndSharesBecomeMetrics) {
  GpuClocks clocks;
  EXPECT_THAT(clocks.metrics(), IsEmpty());
  for (const double mhz : {1800.0, 1980.0, 1755.0}) {
    GpuState s;
    s.sm_mhz = mhz;
    clocks.see(s);
    clocks.count(mhz < 1800);
  }
  const std::vector<Metric> metrics = clocks.metrics();
  EXPECT_EQ(*find_metric(metrics, kGpuClockLow), 1755);
  EXPECT_EQ(*find_metric(metrics, kGpuClockHigh), 1980);
  EXPECT_EQ(find_metric(metrics, kGpuTemperatureLow), nullptr) << "not told";
  EXPECT_NEAR(*find_metric(metrics, kThrottledShare), 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace assay::cases
