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
  EXPECT_EQ(is_throttled(state({}), state({})), false);
  EXPECT_EQ(is_throttled(state({}), state({"gpu_idle", "applications_clocks_setting"})), false);
}

TEST(GpuClocks, AStateThatTellsNothingLeavesItOpen) {
  EXPECT_FALSE(is_throttled({}, {}).has_value());
  EXPECT_FALSE(is_throttled(state({}), {}).has_value());
  GpuState times;
  times.violation_ns = {{"power", 3}};
  EXPECT_EQ(is_throttled(times, times), false);
}

TEST(GpuClocks, WhatHoldsThemDownIsSeenByReasonOrByItsTime) {
  EXPECT_EQ(is_throttled(state({}), state({"gpu_idle", "sw_power_cap"})), true);
  EXPECT_EQ(is_throttled(state({}), state({"hw_thermal_slowdown"})), true);
  EXPECT_EQ(is_throttled(state({}, 7), state({"gpu_idle"}, 8)), true)
      << "over by the time one asks";
  EXPECT_EQ(is_throttled(state({}, 7), state({}, 7)), false) << "that was before";
  EXPECT_EQ(is_throttled(state({"sw_power_cap"}), state({})), false);
  EXPECT_EQ(is_throttled({}, state({}, 8)), false) << "nobody knows since when";
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
