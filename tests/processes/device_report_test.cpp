#include "processes/device_report.h"

#include <gtest/gtest.h>

namespace assay::processes {
namespace {

DeviceReport phase(std::uint64_t launches, std::uint64_t to_device, std::uint64_t to_host) {
  DeviceReport r;
  r.work.counters.launches = launches;
  r.work.to_device_bytes = to_device;
  r.work.to_host_bytes = to_host;
  return r;
}

TEST(DeviceReport, TheWorkIsThatOfThePhaseThatCounts) {
  DeviceReport all;
  all.add(phase(1, 0, 0), false);
  all.add(phase(2, 10, 20), true);
  all.add(phase(3, 0, 0), false);
  EXPECT_EQ(all.work.counters.launches, 2u);
  EXPECT_EQ(all.work.to_device_bytes, 10u);
  EXPECT_EQ(all.work.to_host_bytes, 20u);
}

// Otherwise a submission could fetch its data before the clock starts and compute on the host.
TEST(DeviceReport, WhatTheHostLearnedBeforeThePhaseThatCountsIsKept) {
  DeviceReport all;
  all.add(phase(1, 100, 1000), false);
  all.add(phase(1, 1, 2), false);
  all.add(phase(1, 10, 20), true);
  all.add(phase(1, 5000, 5000), false);
  EXPECT_EQ(all.work.to_host_before, 1002u);
}

TEST(DeviceReport, MostMemoryAndAllFindingsStay) {
  DeviceReport first = phase(1, 0, 0), second = phase(1, 0, 0), all;
  first.work.device_bytes = 50;
  first.findings = 1;
  first.first_finding = "a race";
  second.findings = 2;
  second.first_finding = "another";
  second.over_limit = 7;
  all.add(first, false);
  all.add(second, true);
  EXPECT_EQ(all.work.device_bytes, 50u);
  EXPECT_EQ(all.findings, 3u);
  EXPECT_EQ(all.first_finding, "a race");
  EXPECT_EQ(all.over_limit, 7u);
}

TEST(DeviceReport, WhatIsToldOfAFailureIsTheStrongest) {
  DeviceReport report;
  EXPECT_FALSE(device_failure(report));
  report.over_limit = 1'500'000;
  EXPECT_EQ(device_failure(report)->verdict, Verdict::time_limit);
  EXPECT_EQ(device_failure(report)->detail,
            "its kernels want more warp instructions than the 1.5 million that a call may execute");
  report.findings = 3;
  report.first_finding = "a race";
  EXPECT_EQ(device_failure(report)->verdict, Verdict::device_error);
  EXPECT_EQ(device_failure(report)->detail, "a race (and findings at 2 more places)");
  report.invalid_ptx = "line 1";
  EXPECT_EQ(device_failure(report)->detail, "the device rejects the program: line 1");
  report.unsupported = "stacksave";
  EXPECT_EQ(device_failure(report)->verdict, Verdict::needs_gpu);
  EXPECT_EQ(device_failure(report)->detail, "needs a GPU (stacksave)");
}

}  // namespace
}  // namespace assay::processes
