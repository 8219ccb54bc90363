#include "cases/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "assay/abi.h"
#include "support/inout_copies.h"

namespace assay::cases {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNan = "nan";

// One output of four floats that must all be 1, or NaN in the case of that name, and a state of
// three bytes that a call may change.
class Ones final : public Challenge {
 public:
  CasePlan plan(const CaseSpec&) const override {
    CasePlan plan;
    plan.buffers = {{"y", Dtype::f32, {4}, Role::output}, {"state", Dtype::u8, {3}, Role::inout}};
    return plan;
  }
  void fill(const CaseSpec&, const CasePlan&, const Seeds&, BufferViews) const override {}
  std::unique_ptr<Reference> reference(const CaseSpec&, const CasePlan&,
                                       BufferViews) const override {
    return std::make_unique<Reference>();
  }
  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference&, BufferViews buffers,
                    const CallbackServer*) const override {
    CheckResult result;
    result.error = 0.5;
    result.bound = 1;
    result.accuracy = 2;
    result.metrics = {{"checks", 1}};
    for (const float v : buffers[0].span<float>()) {
      if (spec.name == kNan ? std::isnan(v) : v == 1) continue;
      result.pass = false;
      result.detail = "not a one";
    }
    return result;
  }
  std::string shape(const CaseSpec&) const override { return "n=4"; }
};

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest()
      : plan_(challenge_.plan(spec_)),
        layout_(processes::make_layout(plan_, false)),
        output_(layout_.output_bytes),
        views_(processes::views(layout_, nullptr, output_.data())),
        first_(plan_, views_),
        reference_(challenge_.reference(spec_, plan_, views_)) {
    processes::poison(plan_, layout_, output_.data(), kSeed);
  }

  CaseResult judged(std::int32_t status) {
    CaseResult result;
    judge(challenge_,
          {.spec = &spec_,
           .plan = &plan_,
           .layout = &layout_,
           .reference = reference_.get(),
           .buffers = views_,
           .first = first_.views(),
           .output = output_.data(),
           .poison_seed = kSeed,
           .status = status,
           .server = server_},
          result);
    return result;
  }
  void write(float value) {
    for (float& v : views_[0].span<float>()) v = value;
  }
  std::byte* behind() { return static_cast<std::byte*>(views_[0].data) + views_[0].bytes; }

  static constexpr std::uint64_t kSeed = 5;
  Ones challenge_;
  CaseSpec spec_;
  const CallbackServer* server_ = nullptr;
  CasePlan plan_;
  processes::Layout layout_;
  std::vector<std::byte> output_;
  std::vector<BufferView> views_;
  testing::InoutCopies first_;
  std::unique_ptr<Reference> reference_;
};

TEST_F(JudgeTest, ARightOutputPassesWithWhatTheCheckMeasured) {
  write(1);
  const CaseResult r = judged(ASSAY_OK);
  EXPECT_EQ(r.verdict, Verdict::ok);
  EXPECT_EQ(r.error, 0.5);
  EXPECT_EQ(r.bound, 1);
  EXPECT_EQ(r.accuracy, 2);
  ASSERT_EQ(r.metrics.size(), 1u);
  EXPECT_EQ(r.metrics[0].name, "checks");
}

TEST_F(JudgeTest, WrongAndUntouchedOutputsFailWithTheChecksWords) {
  EXPECT_EQ(judged(ASSAY_OK).verdict, Verdict::wrong_answer);
  write(2);
  const CaseResult r = judged(ASSAY_OK);
  EXPECT_EQ(r.verdict, Verdict::wrong_answer);
  EXPECT_EQ(r.detail, "not a one");
}

TEST_F(JudgeTest, WhereNanIsExpectedItMustHaveBeenWritten) {
  spec_.name = kNan;
  const CaseResult untouched = judged(ASSAY_OK);
  EXPECT_EQ(untouched.verdict, Verdict::wrong_answer);
  EXPECT_EQ(untouched.detail, "not a one: it was never written");
  for (const float nan : {std::nanf(""), -std::nanf("")}) {
    write(nan);
    EXPECT_EQ(judged(ASSAY_OK).verdict, Verdict::ok);
  }
  processes::poison(plan_, layout_, output_.data(), kSeed);
  for (float& v : views_[0].span<float>().first(3)) v = std::nanf("");
  EXPECT_EQ(judged(ASSAY_OK).verdict, Verdict::wrong_answer);
}

TEST_F(JudgeTest, AnUnexpectedStatusFailsWhateverTheOutputs) {
  write(1);
  const CaseResult r = judged(ASSAY_EINVAL);
  EXPECT_EQ(r.verdict, Verdict::wrong_answer);
  EXPECT_THAT(r.detail, HasSubstr("ASSAY_EINVAL"));
  EXPECT_EQ(judged(77).verdict, Verdict::wrong_answer);
}

TEST_F(JudgeTest, AMissingFeatureIsUnsupportedUnlessExpected) {
  EXPECT_EQ(judged(ASSAY_ENOTSUP).verdict, Verdict::unsupported);
  spec_.expect_status = ASSAY_EINVAL;
  EXPECT_EQ(judged(ASSAY_ENOTSUP).verdict, Verdict::unsupported);
  spec_.expect_status = ASSAY_ENOTSUP;
  EXPECT_EQ(judged(ASSAY_ENOTSUP).verdict, Verdict::ok);
}

// Refuses every request, as if it were wrong, with the status that invalid arguments have.
class Refusing final : public CallbackServer {
 public:
  std::int32_t serve(std::uint32_t, std::span<const std::byte>, std::span<std::byte>) override {
    return complain("asked too much");
  }
};

TEST_F(JudgeTest, AWrongRequestFailsEvenIfItsRefusalIsTheStatusExpected) {
  Refusing server;
  server_ = &server;
  spec_.expect_status = ASSAY_EINVAL;
  EXPECT_EQ(judged(ASSAY_EINVAL).verdict, Verdict::ok);
  const CaseResult r = judged(server.serve(0, {}, {}));
  EXPECT_EQ(r.verdict, Verdict::wrong_answer);
  EXPECT_EQ(r.detail, "the model was called wrongly: asked too much");
}

TEST_F(JudgeTest, BytesBehindAnOutputMustSurvive) {
  write(1);
  behind()[0] ^= std::byte{1};
  const CaseResult r = judged(ASSAY_OK);
  EXPECT_EQ(r.verdict, Verdict::wrong_answer);
  EXPECT_THAT(r.detail, HasSubstr("y"));
}

TEST_F(JudgeTest, ACallThatMustFailMustLeaveItsOutputsAlone) {
  spec_.expect_status = ASSAY_EINVAL;
  EXPECT_EQ(judged(ASSAY_EINVAL).verdict, Verdict::ok);
  EXPECT_EQ(judged(ASSAY_OK).verdict, Verdict::wrong_answer);
  views_[0].span<float>()[3] = 1;
  const CaseResult r = judged(ASSAY_EINVAL);
  EXPECT_EQ(r.verdict, Verdict::wrong_answer);
  EXPECT_THAT(r.detail, HasSubstr("y"));
}

TEST_F(JudgeTest, ACallThatMustFailMustLeaveWhatItMayChangeAsItWas) {
  std::byte& last = views_[1].span<std::byte>()[2];
  last ^= std::byte{1};
  write(1);
  EXPECT_EQ(judged(ASSAY_OK).verdict, Verdict::ok);
  processes::poison(plan_, layout_, output_.data(), kSeed);
  spec_.expect_status = ASSAY_EINVAL;
  const CaseResult r = judged(ASSAY_EINVAL);
  EXPECT_EQ(r.verdict, Verdict::wrong_answer);
  EXPECT_EQ(r.detail, "state was written at byte 2 although the call had to fail");
  last ^= std::byte{1};
  EXPECT_EQ(judged(ASSAY_EINVAL).verdict, Verdict::ok);
}

TEST(StatusName, NamesEveryStatusAndNoOther) {
  EXPECT_STREQ(status_name(ASSAY_OK), "ASSAY_OK");
  EXPECT_STREQ(status_name(ASSAY_EINTERNAL), "ASSAY_EINTERNAL");
  EXPECT_STREQ(status_name(-1), "an unknown status");
  EXPECT_STREQ(status_name(7), "an unknown status");
}

}  // namespace
}  // namespace assay::cases
