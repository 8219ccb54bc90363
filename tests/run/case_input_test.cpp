#include "run/case_input.h"

#include <gtest/gtest.h>

#include "fake_world.h"

namespace assay::run {
namespace {

enum Handle { kX, kLate, kState, kY };

// An input, one that is hidden until phase 1, an inout and an output: each of one float.
class FourBuffers final : public testing::Copying {
 public:
  CasePlan plan(const CaseSpec&) const override {
    CasePlan plan;
    plan.buffers = {{"x", Dtype::f32, {1}, Role::input},
                    {"late", Dtype::f32, {1}, Role::input, 1},
                    {"state", Dtype::f32, {1}, Role::inout},
                    {"y", Dtype::f32, {1}, Role::output}};
    plan.phases = 2;
    return plan;
  }
  void fill(const CaseSpec&, const CasePlan&, std::uint64_t seed,
            BufferViews buffers) const override {
    buffers[kX].span<float>()[0] = static_cast<float>(seed);
    buffers[kLate].span<float>()[0] = static_cast<float>(seed + 1);
    buffers[kState].span<float>()[0] = static_cast<float>(seed + 2);
  }
};

class CaseInputTest : public ::testing::Test {
 protected:
  // What the worker sees.
  float seen(Handle handle) {
    const wire::BufferSlot& slot = planned_.layout.slots[handle];
    float value;
    std::memcpy(&value, (slot.in_output != 0 ? output_.data() : arena_.data()) + slot.offset,
                sizeof value);
    return value;
  }

  FourBuffers challenge_;
  CaseSpec spec_ = testing::case_spec("one");
  PlannedCase planned_ = plan_case(challenge_, spec_);
  std::vector<std::byte> arena_{planned_.layout.input_bytes}, output_{planned_.layout.output_bytes};
  CaseInput input_{challenge_, planned_, arena_.data()};
};

TEST_F(CaseInputTest, InputsStandInTheArenaAndLaterOnesAreHidden) {
  input_.draw(10);
  input_.begin(output_.data(), 1);
  EXPECT_EQ(seen(kX), 10);
  EXPECT_EQ(seen(kLate), 0);
  EXPECT_EQ(seen(kState), 12);
  EXPECT_NE(seen(kY), seen(kY)) << "poison is no number";
}

TEST_F(CaseInputTest, APhaseShowsItsInputsAndTheNextRunHidesThemAgain) {
  input_.draw(10);
  input_.begin(output_.data(), 1);
  input_.reveal(0);
  EXPECT_EQ(seen(kLate), 0);
  input_.reveal(1);
  EXPECT_EQ(seen(kLate), 11);
  input_.begin(output_.data(), 2);
  EXPECT_EQ(seen(kLate), 0);
}

TEST_F(CaseInputTest, WhatARunLeftInAnInoutIsGoneInTheNext) {
  input_.draw(10);
  input_.begin(output_.data(), 1);
  const float changed = 99;
  std::memcpy(output_.data() + planned_.layout.slots[kState].offset, &changed, sizeof changed);
  input_.begin(output_.data(), 2);
  EXPECT_EQ(seen(kState), 12);
}

TEST_F(CaseInputTest, ViewsShowTrueInputsWhateverTheWorkerSees) {
  input_.draw(10);
  input_.begin(output_.data(), 1);
  const auto views = input_.views(output_.data());
  EXPECT_EQ(views[kX].span<float>()[0], 10);
  EXPECT_EQ(views[kLate].span<float>()[0], 11);
  EXPECT_EQ(static_cast<void*>(views[kY].data), output_.data() + planned_.layout.slots[kY].offset);
}

TEST_F(CaseInputTest, ASeedDecidesTheInput) {
  input_.draw(10);
  input_.draw(20);
  input_.begin(output_.data(), 1);
  EXPECT_EQ(seen(kX), 20);
  EXPECT_EQ(seen(kState), 22);
}

}  // namespace
}  // namespace assay::run
