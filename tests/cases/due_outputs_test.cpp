#include "cases/due_outputs.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace assay::cases {
namespace {

enum Handle { kX, kEarly, kState, kY, kScratch };

// Three phases, of which the second is timed: an output due after the first, a state, an output due
// as usual, and one that may differ between runs.
class DueOutputsTest : public ::testing::Test {
 protected:
  DueOutputsTest() {
    CasePlan& plan = planned_.plan;
    plan.phases = 3;
    plan.timed_phase = 1;
    plan.buffers = {{.name = "x", .dtype = Dtype::u8, .shape = {2}, .role = Role::input},
                    {.name = "early", .dtype = Dtype::u8, .shape = {2}, .role = Role::output},
                    {.name = "state", .dtype = Dtype::u8, .shape = {2}, .role = Role::inout},
                    {.name = "y", .dtype = Dtype::u8, .shape = {2}, .role = Role::output},
                    {.name = "scratch", .dtype = Dtype::u8, .shape = {2}, .role = Role::output}};
    plan.buffers[kEarly].due = 0;
    plan.buffers[kScratch].compared = false;
    planned_.spec = &spec_;
  }

  DueOutputs outputs() {
    std::vector<BufferView> views;
    for (auto& bytes : memory_) views.push_back({bytes.data(), bytes.size()});
    return {planned_, std::move(views)};
  }
  void write(Handle handle, char value) { memory_[handle].fill(value); }
  static char at(const DueOutputs& outputs, Handle handle) {
    return outputs.buffers()[handle].span<char>()[1];
  }

  CaseSpec spec_;
  PlannedCase planned_;
  std::array<std::array<char, 2>, 5> memory_{};
};

TEST_F(DueOutputsTest, AnOutputIsDueInItsPhaseElseInTheLast) {
  const DueOutputs due = outputs();
  EXPECT_TRUE(due.any(0));
  EXPECT_FALSE(due.any(1));
  EXPECT_TRUE(due.any(2));
}

TEST_F(DueOutputsTest, OfATimedCaseInTheTimedPhase) {
  spec_.group = CaseGroup::timed;
  const DueOutputs due = outputs();
  EXPECT_TRUE(due.any(1));
  EXPECT_FALSE(due.any(2));
}

TEST_F(DueOutputsTest, ABufferThatIsEmptyIsNeverDue) {
  for (const Handle handle : {kState, kY, kScratch}) planned_.plan.buffers[handle].due = 0;
  std::vector<BufferView> views(5);
  const DueOutputs due(planned_, views);
  EXPECT_FALSE(due.any(0));
}

TEST_F(DueOutputsTest, WhatWasTakenStaysAndTheRestFollowsTheWorker) {
  DueOutputs due = outputs();
  write(kEarly, 1);
  write(kY, 1);
  due.take(0);
  write(kEarly, 2);
  write(kY, 2);
  EXPECT_EQ(at(due, kEarly), 1);
  EXPECT_EQ(at(due, kY), 2);
}

TEST_F(DueOutputsTest, NamesTheFirstBufferThatIsNotAsItWas) {
  const DueOutputs due = outputs();
  const DueOutputs::Contents before = due.contents();
  write(kX, 3);
  EXPECT_EQ(due.changed_since(before), "") << "nobody may write inputs, so nobody looks at them";
  write(kY, 3);
  EXPECT_EQ(due.changed_since(before), "y");
  write(kState, 3);
  EXPECT_EQ(due.changed_since(before), "state");
}

TEST_F(DueOutputsTest, RunsAreComparedByOutputsAndStatesUnlessThePlanSaysOtherwise) {
  const DueOutputs due = outputs();
  write(kX, 9);
  write(kEarly, 1);
  write(kState, 2);
  write(kY, 3);
  write(kScratch, 9);
  const std::vector<std::byte> bytes = due.compared();
  ASSERT_EQ(bytes.size(), 6u);
  EXPECT_EQ(std::memcmp(bytes.data(), "\1\1\2\2\3\3", 6), 0);
}

TEST_F(DueOutputsTest, OfASparseOutputThePiecesAreCopiedAndCompared) {
  std::array<char, 8> sparse{};
  planned_.plan.buffers = {
      {.name = "rows", .dtype = Dtype::u8, .shape = {8}, .role = Role::output}};
  planned_.plan.buffers[0].due = 0;
  planned_.plan.buffers[0].pieces = {{1, 2}, {6, 1}};
  DueOutputs due(planned_, {{sparse.data(), sparse.size()}});
  sparse = {9, 1, 2, 9, 9, 9, 3, 9};
  due.take(0);
  sparse.fill(0);
  const std::vector<std::byte> bytes = due.compared();
  ASSERT_EQ(bytes.size(), 3u);
  EXPECT_EQ(std::memcmp(bytes.data(), "\1\2\3", 3), 0);
}

}  // namespace
}  // namespace assay::cases
