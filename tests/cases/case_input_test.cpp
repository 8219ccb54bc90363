#include "cases/case_input.h"

#include <gtest/gtest.h>

#include <cmath>

#include "assay/error.h"
#include "cases/challenge_registry.h"
#include "cases/fake_world.h"
#include "spec/spec.h"
#include "support/direct_runner.h"
#include "support/paths.h"

namespace assay::cases {
namespace {

enum Handle { kX, kLate, kState, kY, kBrief };

// Buffers of one float each: an input, one hidden until phase 1, an inout, an output, and an input
// for phase 0 alone.
class FiveBuffers final : public testing::Copying {
 public:
  CasePlan plan(const CaseSpec&) const override {
    CasePlan plan;
    plan.buffers = {{"x", Dtype::f32, {1}, Role::input},
                    {"late", Dtype::f32, {1}, Role::input, 1},
                    {"state", Dtype::f32, {1}, Role::inout},
                    {"y", Dtype::f32, {1}, Role::output},
                    {"brief", Dtype::f32, {1}, Role::input, 0, 0}};
    plan.phases = 2;
    return plan;
  }
  void fill(const CaseSpec&, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    const float x = seeds.inputs == Seeds(10).inputs ? 10 : 20;
    buffers[kX].span<float>()[0] = x;
    buffers[kLate].span<float>()[0] = x + 1;
    buffers[kState].span<float>()[0] = x + 2;
    buffers[kBrief].span<float>()[0] = x + 3;
  }
};

class CaseInputTest : public ::testing::Test {
 protected:
  // What the worker sees in the buffer.
  float seen(Handle handle) {
    const wire::BufferSlot& slot = planned_.layout.slots[handle];
    float value;
    std::memcpy(&value, (slot.in_output != 0 ? output_.data() : arena_.data()) + slot.offset,
                sizeof value);
    return value;
  }

  FiveBuffers challenge_;
  CaseSpec spec_ = testing::case_spec("one");
  PlannedCase planned_ = plan_case(challenge_, spec_);
  std::vector<std::byte> arena_{planned_.layout.input_bytes}, output_{planned_.layout.output_bytes};
  CaseInput input_{challenge_, planned_, arena_.data()};
};

TEST_F(CaseInputTest, BasesAreAlignedWhereTheCaseSaysSo) {
  constexpr std::size_t kAlign = 256;
  EXPECT_EQ(planned_.layout.slots[kX].offset % kAlign, sizeof(float)) << "one element";
  spec_.aligned = true;
  const PlannedCase aligned = plan_case(challenge_, spec_);
  for (const wire::BufferSlot& slot : aligned.layout.slots) EXPECT_EQ(slot.offset % kAlign, 0u);
}

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

TEST_F(CaseInputTest, AnInputGoesWithThePhaseInWhichItEnds) {
  input_.draw(10);
  for (const std::uint64_t run : {1, 2}) {
    input_.begin(output_.data(), run);
    EXPECT_EQ(seen(kBrief), 13);
    input_.reveal(0);
    EXPECT_EQ(seen(kBrief), 13);
    input_.reveal(1);
    EXPECT_EQ(seen(kBrief), 0);
    EXPECT_EQ(seen(kX), 10);
    EXPECT_EQ(input_.views(output_.data())[kBrief].span<float>()[0], 13) << "for the check";
  }
}

TEST_F(CaseInputTest, WhatARunLeftInAnInoutIsGoneInTheNext) {
  input_.draw(10);
  input_.begin(output_.data(), 1);
  const float changed = 99;
  std::memcpy(output_.data() + planned_.layout.slots[kState].offset, &changed, sizeof changed);
  input_.begin(output_.data(), 2);
  EXPECT_EQ(seen(kState), 12);
}

TEST_F(CaseInputTest, FirstContentsAreWhatInoutsHeldWhateverTheWorkerWrote) {
  input_.draw(10);
  input_.begin(output_.data(), 1);
  const float changed = 99;
  std::memcpy(output_.data() + planned_.layout.slots[kState].offset, &changed, sizeof changed);
  const std::vector<BufferView> first = input_.first_contents();
  ASSERT_EQ(first[kState].span<float>().size(), 1u);
  EXPECT_EQ(first[kState].span<float>()[0], 12);
  for (const Handle other : {kX, kLate, kY, kBrief}) EXPECT_EQ(first[other].bytes, 0u);
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

// --- what a plan owes, and when
// ----------------------------------------------------------------------

// Two phases; the test sets when y is due.
class Owing final : public testing::Copying {
 public:
  Owing(int timed_phase, int due) : timed_phase_(timed_phase), due_(due) {}
  CasePlan plan(const CaseSpec& spec) const override {
    CasePlan plan = testing::Copying::plan(spec);
    plan.phases = 2;
    plan.timed_phase = timed_phase_;
    plan.buffers[1].due = due_;
    return plan;
  }

 private:
  int timed_phase_, due_;
};

TEST(PlanCase, RefusesATimedPhaseThatOwesNothingAndIsFollowed) {
  const CaseSpec timed = testing::case_spec("time", CaseGroup::timed);
  EXPECT_THROW(plan_case(Owing(0, 1), timed), ChallengeError);
  EXPECT_NO_THROW(plan_case(Owing(0, 0), timed));
  EXPECT_NO_THROW(plan_case(Owing(0, kDefaultDue), timed));
  EXPECT_NO_THROW(plan_case(Owing(1, 0), timed)) << "nothing follows it";
  EXPECT_NO_THROW(plan_case(Owing(0, 1), testing::case_spec("one")));
}

// Two floats of an input and of an output, 4 GiB apart.
class FarApart final : public testing::Copying {
 public:
  static constexpr std::int64_t kFar = std::int64_t{1} << 30;
  CasePlan plan(const CaseSpec&) const override {
    CasePlan plan;
    plan.buffers = {{.name = "x", .shape = {kFar + 1}, .role = Role::input},
                    {.name = "y", .shape = {kFar + 1}, .role = Role::output}};
    for (BufferPlan& buffer : plan.buffers) buffer.pieces = {{0, 1}, {kFar, 1}};
    return plan;
  }
  void fill(const CaseSpec&, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    buffers[0].as<float>()[0] = 1;
    buffers[0].as<float>()[kFar] = static_cast<float>(seeds.inputs % 1000);
    if (buffers[1].bytes != 0) throw ChallengeError("there is no output yet");
  }
};

TEST(PlanCase, RefusesSparseBuffersWhereMuchIsMeasured) {
  const FarApart challenge;
  EXPECT_NO_THROW(plan_case(challenge, testing::case_spec("one")));
  CaseSpec spec = testing::case_spec("time", CaseGroup::timed);
  EXPECT_THROW(plan_case(challenge, spec), ChallengeError);
  spec = testing::case_spec("memory", CaseGroup::resource);
  EXPECT_THROW(plan_case(challenge, spec), ChallengeError);
  spec = testing::case_spec("twice");
  spec.deterministic = true;
  EXPECT_THROW(plan_case(challenge, spec), ChallengeError);
}

TEST(SparseCaseInput, ShowsInputsAndTheOutputsOfTheArenaThatIsGiven) {
  constexpr std::int64_t kFar = FarApart::kFar;
  const FarApart challenge;
  const CaseSpec spec = testing::case_spec("one");
  const PlannedCase planned = plan_case(challenge, spec);
  processes::Arena arena("input", planned.layout.input_bytes,
                         processes::Arena::Access::worker_reads);
  processes::Arena first("output", planned.layout.output_bytes,
                         processes::Arena::Access::worker_writes),
      second("output", planned.layout.output_bytes, processes::Arena::Access::worker_writes);
  CaseInput input(challenge, planned, arena.data());
  input.draw(10);
  for (processes::Arena* output : {&first, &second}) {
    input.begin(output->data(), 3);
    const std::vector<BufferView> seen = input.views(output->data());
    EXPECT_EQ(seen[0].as<float>()[kFar], static_cast<float>(Seeds(10).inputs % 1000));
    EXPECT_TRUE(std::isnan(seen[0].as<float>()[1]));
    EXPECT_TRUE(std::isnan(seen[1].as<float>()[kFar]));
    seen[1].as<float>()[kFar] = 5;
  }
  EXPECT_EQ(input.views(first.data())[1].as<float>()[kFar], 5);
}

TEST(PlanCase, RefusesPhasesThatNeverCome) {
  EXPECT_THROW(plan_case(Owing(0, 2), testing::case_spec("one")), ChallengeError);
  EXPECT_THROW(plan_case(Owing(0, -2), testing::case_spec("one")), ChallengeError);
  EXPECT_THROW(plan_case(Owing(2, 0), testing::case_spec("one")), ChallengeError);
}

TEST(PlanCase, EveryCaseOfEveryChallengeOwesWhatItTimes) {
  int timed_in_the_middle = 0;
  for (const auto& row : challenge_rows()) {
    ChallengeSpec spec =
        load_spec(assay::testing::source_dir() + "/challenges/" + std::string(row.name));
    assay::testing::draw_cases(spec, 1);
    for (const CaseSpec& c : spec.cases) {
      SCOPED_TRACE(spec.name + "/" + c.name);
      PlannedCase planned;
      ASSERT_NO_THROW(planned = plan_case(row.get(), c));
      const CasePlan& plan = planned.plan;
      if (c.group != CaseGroup::timed || plan.timed_phase + 1 == plan.phases) continue;
      ++timed_in_the_middle;
      // Buffers due later are the harness's own bookkeeping, or what calls of a later phase give
      // back.
      for (const BufferPlan& b : plan.buffers) {
        const bool later = b.role != Role::input && plan.due_phase(b, true) > plan.timed_phase;
        EXPECT_TRUE(!later || b.name == "results" || b.name.starts_with("read_")) << b.name;
      }
    }
  }
  EXPECT_GT(timed_in_the_middle, 0);
}

TEST(PlanCase, ASkewMovesEveryBuffer) {
  const Owing challenge(0, 0);
  const CaseSpec spec = testing::case_spec("one");
  for (const processes::Memory memory : {processes::Memory::host, processes::Memory::device}) {
    const processes::Layout usual = plan_case(challenge, spec, memory).layout,
                            moved = plan_case(challenge, spec, memory, processes::kMostSkew).layout;
    for (std::size_t i = 0; i < usual.slots.size(); ++i)
      EXPECT_EQ(moved.slots[i].offset, usual.slots[i].offset + processes::kMostSkew);
    EXPECT_LE(moved.input_bytes, usual.input_bytes + processes::kMostSkew);
    EXPECT_LE(moved.output_bytes, usual.output_bytes + processes::kMostSkew);
    EXPECT_LE(moved.device_bytes, usual.device_bytes + processes::kMostSkew);
  }
}

}  // namespace
}  // namespace assay::cases
