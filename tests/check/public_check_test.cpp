#include "check/public_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check_fixture.h"
#include "records/lookup.h"
#include "support/error_of.h"

namespace assay::check {
namespace {

using testing::ending;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::wrong;

class PublicCheckTest : public ::testing::Test {
 protected:
  PublicCheck checked(Language language = Language::cpp) {
    cells::CellRunner runner = fixture_.runner();
    return check_publicly(runner, fixture_.spec_, CheckFixture::answer(language));
  }

  CheckFixture fixture_{public_copying()};
};

TEST_F(PublicCheckTest, ARightAnswerPassesAndIsTimedBetweenNaiveAndPar) {
  const PublicCheck check = checked();
  EXPECT_TRUE(passed(check));
  EXPECT_THAT(check.cell.cases, SizeIs(4));
  ASSERT_THAT(check.speeds, SizeIs(1));
  EXPECT_NEAR(check.speeds[0].ratio_to_par, 0.5, 1e-6);
  EXPECT_NEAR(check.speeds[0].ratio_to_naive, 2, 1e-6);
  EXPECT_EQ(check.not_timed, "");
  EXPECT_EQ(check.cell.seed, 7u);
}

TEST_F(PublicCheckTest, WhatIsWrongIsNotTimed) {
  fixture_.fails("public_plain", wrong());
  const PublicCheck check = checked();
  EXPECT_FALSE(passed(check));
  EXPECT_EQ(worst(check), Verdict::wrong_answer);
  EXPECT_THAT(check.speeds, IsEmpty());
  EXPECT_EQ(check.not_timed, "required cases are wrong");
  EXPECT_THAT(fixture_.world_.entries("run naive"), IsEmpty());
}

TEST_F(PublicCheckTest, WhatIsOptionalMayBeLeftOut) {
  fixture_.fails("public_more", CheckFixture::not_supported());
  const PublicCheck check = checked();
  EXPECT_TRUE(passed(check));
  EXPECT_THAT(check.speeds, SizeIs(1));
  EXPECT_EQ(find_case(check.cell, "public_more")->verdict, Verdict::unsupported);
}

TEST_F(PublicCheckTest, ButNotBeWrong) {
  fixture_.fails("public_more", wrong());
  const PublicCheck check = checked();
  EXPECT_FALSE(passed(check));
  EXPECT_THAT(check.speeds, SizeIs(1)) << "what is required is right";
}

TEST_F(PublicCheckTest, WhatIsRequiredMayNotBeLeftOut) {
  fixture_.fails("public_plain", CheckFixture::not_supported());
  EXPECT_EQ(worst(checked()), Verdict::unsupported);
}

TEST(IsWrong, OnlyWhatIsOptionalMayBeMissing) {
  const auto wrong_if = [](CaseGroup group, Verdict verdict) {
    CaseResult r;
    r.group = group;
    r.verdict = verdict;
    return is_wrong(r);
  };
  for (const Verdict missing : {Verdict::unsupported, Verdict::needs_gpu}) {
    EXPECT_TRUE(wrong_if(CaseGroup::core, missing)) << code(missing);
    EXPECT_TRUE(wrong_if(CaseGroup::timed, missing)) << code(missing);
    EXPECT_FALSE(wrong_if(CaseGroup::completeness, missing)) << code(missing);
    EXPECT_FALSE(wrong_if(CaseGroup::resource, missing)) << code(missing);
  }
  for (const CaseGroup group : {CaseGroup::core, CaseGroup::completeness}) {
    EXPECT_TRUE(wrong_if(group, Verdict::wrong_answer));
    EXPECT_FALSE(wrong_if(group, Verdict::ok));
  }
}

TEST_F(PublicCheckTest, AHangIsAVerdict) {
  fixture_.fails("public_plain", ending(Verdict::time_limit));
  EXPECT_EQ(worst(checked()), Verdict::time_limit);
}

TEST_F(PublicCheckTest, WrongOnlyWhenTimedIsWrong) {
  fixture_.fails("public_speed", wrong());
  const PublicCheck check = checked();
  EXPECT_FALSE(passed(check));
  EXPECT_THAT(check.speeds, IsEmpty());
  EXPECT_EQ(check.not_timed, "the timed case gave no speed");
}

TEST_F(PublicCheckTest, WhatDoesNotCompileIsNotRun) {
  fixture_.world_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::build_error;
    result.record.log = "submission.cpp:1: error: no";
    return result;
  };
  const PublicCheck check = checked();
  EXPECT_EQ(worst(check), Verdict::build_error);
  EXPECT_THAT(check.cell.cases, IsEmpty());
  EXPECT_THAT(fixture_.world_.log, IsEmpty());
}

TEST_F(PublicCheckTest, WhatCannotBeBuiltHereIsAnError) {
  fixture_.world_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::skipped;
    result.record.log = "no toolkit";
    return result;
  };
  EXPECT_EQ(testing::error_of([&] { checked(Language::cuda); }), "no toolkit");
}

TEST_F(PublicCheckTest, AFaultOfTheHarnessIsNoVerdict) {
  fixture_.world_.libraries["par"].load = {.verdict = Verdict::load_error, .detail = "no par"};
  EXPECT_THAT(testing::error_of([&] { checked(); }), HasSubstr("no par"));
}

}  // namespace
}  // namespace assay::check
