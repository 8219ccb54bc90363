// The real driver of simulated devices, with the real device and with one that misbehaves.
#include "processes/device_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "cases/fake_world.h"
#include "programs/device_behaviour.h"
#include "sandbox/probe.h"
#include "sandbox/worker_image.h"

namespace assay::processes {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Behaviour = testing::DeviceBehaviour;

class DeviceProcessTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { tier_ = sandbox::find_tier(sandbox::worker_image_fd()).tier; }

  DeviceProcess real(std::uint64_t memory_bytes = 1 << 20) {
    DeviceSettings settings;
    settings.memory_bytes = memory_bytes;
    return DeviceProcess(tier_, settings, arena_);
  }
  DeviceProcess scripted(Behaviour behaviour) {
    DeviceSettings settings;
    settings.memory_bytes = static_cast<std::uint64_t>(behaviour);
    settings.image_fd = image_.get();
    return DeviceProcess(tier_, settings, arena_);
  }
  float* in_arena(std::size_t buffer) {
    return reinterpret_cast<float*>(arena_.data() + layout_.slots[buffer].offset);
  }

  static inline sandbox::Tier tier_ = sandbox::Tier::none;
  const Fd image_{::open(ASSAY_TEST_DEVICE, O_RDONLY | O_CLOEXEC)};
  const testing::Copying challenge_{};
  const CaseSpec case_ = testing::case_spec("one");
  const CasePlan plan_ = challenge_.plan(case_);
  Layout layout_ = make_layout(plan_, false, Memory::device);
  Arena arena_{"device arena", layout_.device_bytes + kCallbackPayload,
               Arena::Access::worker_writes};
};

TEST_F(DeviceProcessTest, BuffersArePlacedAndComeBack) {
  DeviceProcess device = real();
  in_arena(1)[0] = 7;
  ASSERT_EQ(device.place(plan_, layout_), DeviceProcess::Placed::yes);
  EXPECT_NE(layout_.slots[0].device, 0u);
  EXPECT_NE(layout_.slots[1].device, layout_.slots[0].device);
  in_arena(1)[0] = 0;
  ASSERT_TRUE(device.start(0, 1000));
  const auto report = device.stop();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->work.counters.launches, 0u);
  EXPECT_EQ(report->findings, 0u);
  std::string changed;
  ASSERT_TRUE(device.collect(plan_, changed));
  EXPECT_EQ(changed, "");
  EXPECT_EQ(in_arena(1)[0], 7);
}

TEST_F(DeviceProcessTest, AWriteReachesDeviceMemoryAndNothingElse) {
  DeviceProcess device = real();
  ASSERT_EQ(device.place(plan_, layout_), DeviceProcess::Placed::yes);
  const float value = 3;
  EXPECT_TRUE(device.write(layout_.slots[1].device, std::as_bytes(std::span(&value, 1))));
  EXPECT_FALSE(device.write(64, std::as_bytes(std::span(&value, 1))));
  std::string changed;
  ASSERT_TRUE(device.collect(plan_, changed));
  EXPECT_EQ(in_arena(1)[0], 3);
}

TEST_F(DeviceProcessTest, AWriteToAnInputIsTold) {
  DeviceProcess device = real();
  in_arena(0)[0] = 1;
  ASSERT_EQ(device.place(plan_, layout_), DeviceProcess::Placed::yes);
  const float value = 3;
  ASSERT_TRUE(device.write(layout_.slots[0].device, std::as_bytes(std::span(&value, 1))));
  std::string changed;
  ASSERT_TRUE(device.collect(plan_, changed));
  EXPECT_THAT(changed, HasSubstr("wrote to the input x"));
}

TEST_F(DeviceProcessTest, WhatDoesNotFitIsNotPlaced) {
  DeviceProcess device = real(16);
  EXPECT_EQ(device.place(plan_, layout_), DeviceProcess::Placed::no_room);
}

TEST_F(DeviceProcessTest, OneThatExitsIsDeadAndItsWordsAreTold) {
  DeviceProcess device = scripted(Behaviour::exits_with_a_word);
  EXPECT_EQ(device.place(plan_, layout_), DeviceProcess::Placed::dead);
  const std::string how = device.how_it_ended();
  EXPECT_THAT(how, HasSubstr("status 5"));
  EXPECT_THAT(how, HasSubstr("no memory"));
  EXPECT_FALSE(device.start(0, 1)) << "it is of no further use";
}

TEST_F(DeviceProcessTest, ACrashIsToldBySignal) {
  DeviceProcess device = scripted(Behaviour::crashes);
  EXPECT_FALSE(device.start(0, 1));
  EXPECT_THAT(device.how_it_ended(), HasSubstr("Aborted"));
}

TEST_F(DeviceProcessTest, OneThatIsSilentIsGivenUp) {
  DeviceProcess device = scripted(Behaviour::is_silent);
  EXPECT_FALSE(device.stop(20ms));
  std::string changed;
  EXPECT_FALSE(device.collect(plan_, changed)) << "it is not waited for again";
}

TEST_F(DeviceProcessTest, ASecondAnswerMakesItUseless) {
  DeviceProcess device = scripted(Behaviour::answers_twice);
  EXPECT_EQ(device.place(plan_, layout_), DeviceProcess::Placed::dead);
}

TEST_F(DeviceProcessTest, GarbageInAReportIsBounded) {
  DeviceProcess device = scripted(Behaviour::reports_garbage);
  const auto report = device.stop();
  ASSERT_TRUE(report);
  EXPECT_THAT(report->first_finding, HasSubstr("rrr"));
  EXPECT_LT(report->first_finding.size(), 2048u);
  std::string changed;
  EXPECT_TRUE(device.collect(plan_, changed));
  EXPECT_EQ(changed, "") << "there is no such input";
}

// The compiler does not notice when neighbouring fields of one type are swapped.
TEST_F(DeviceProcessTest, EveryFigureOfAReportArrivesInItsOwnPlace) {
  DeviceProcess device = scripted(Behaviour::reports_figures);
  const auto said = testing::figures();
  constexpr std::uint64_t kLimit = 1234;
  ASSERT_TRUE(device.start(0, kLimit));
  const auto report = device.stop();
  ASSERT_TRUE(report);
  const SimulatedWork& work = report->work;
  EXPECT_EQ(std::memcmp(&work.counters, &said.counters, sizeof said.counters), 0);
  EXPECT_EQ(work.to_device_bytes, said.to_device_bytes);
  EXPECT_EQ(work.to_host_bytes, said.to_host_bytes);
  EXPECT_EQ(work.within_bytes, said.within_bytes);
  EXPECT_EQ(work.transfers, said.transfers);
  EXPECT_EQ(work.to_host_before, 0u) << "it is of the phases before, see DeviceReport::add";
  EXPECT_EQ(work.device_bytes, said.peak_bytes);
  EXPECT_EQ(report->findings, said.findings);
  EXPECT_EQ(report->first_finding, said.first_finding);
  EXPECT_EQ(report->unsupported, said.unsupported);
  EXPECT_EQ(report->invalid_ptx, said.invalid_ptx);
  EXPECT_EQ(report->over_limit, kLimit);
}

TEST_F(DeviceProcessTest, AnAnswerThatStayedOnTheHostCountsAsCopiedThere) {
  DeviceProcess device = scripted(Behaviour::reports_figures);
  ASSERT_TRUE(device.start(0, 1000));
  device.answered_on_host(100);
  const auto report = device.stop();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->work.to_host_bytes, testing::figures().to_host_bytes + 100);
}

// What a case keeps in device memory besides its buffers counts as scratch.
TEST_F(DeviceProcessTest, MostDeviceMemoryOfAnyPhaseIsKept) {
  DeviceProcess device = scripted(Behaviour::reports_figures);
  const auto report = device.stop();
  ASSERT_TRUE(report);
  DeviceReport all;
  all.add(*report, false);
  all.add(*report, true);
  EXPECT_EQ(all.work.device_bytes, testing::figures().peak_bytes);
  EXPECT_EQ(all.work.to_host_before, 2u);
}

}  // namespace
}  // namespace assay::processes
