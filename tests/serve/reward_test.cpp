#include "serve/reward.h"

#include <gtest/gtest.h>

#include "serve/service_fixture.h"

namespace assay::serve {
namespace {

Json with_cases(int passed, int of) {
  Json grade = testing::graded();
  grade["passed"]["core"] = {
      {"passed", passed}, {"run", of}, {"asked", of}, {"of", of}, {"share", nullptr}};
  return grade;
}

TEST(Reward, ARightAnswerHasItsSpeed) {
  const Json reward = reward_of(with_cases(4, 4));
  EXPECT_EQ(reward["compiled"], 1);
  EXPECT_EQ(reward["correctness"], 1.0);
  EXPECT_EQ(reward["right"], true);
  EXPECT_EQ(reward["dimensions"]["performance"], 0.5);
  EXPECT_EQ(reward["log_speed_over_naive"], 0.5);
  EXPECT_TRUE(reward["log_speed_over_par"].is_null());
  EXPECT_DOUBLE_EQ(reward["shaped"], 0.1 + 0.6 + 0.3 * 0.5);
}

TEST(Reward, AWrongOneHasNoneHoweverFast) {
  Json grade = with_cases(3, 4);
  grade["dimensions"]["performance"]["points"] = 20;
  const Json reward = reward_of(grade);
  EXPECT_EQ(reward["right"], false);
  EXPECT_DOUBLE_EQ(reward["shaped"], 0.1 + 0.6 * 0.75);
}

TEST(Reward, OneThatIsWrongAtATimedSizeIsNotRight) {
  Json grade = with_cases(4, 4);
  grade["capped"] = true;
  EXPECT_EQ(reward_of(grade)["right"], false);
  EXPECT_DOUBLE_EQ(reward_of(grade)["correctness"], 0.8) << "as if one more case had failed";
  EXPECT_DOUBLE_EQ(reward_of(grade)["shaped"], 0.1 + 0.6 * 0.8);
}

TEST(Reward, CasesThatWereNotRunDidNotPass) {
  Json grade = with_cases(4, 4);
  grade["passed"]["trap"] = {
      {"passed", 0}, {"run", 0}, {"asked", 4}, {"of", 4}, {"share", nullptr}};
  EXPECT_EQ(reward_of(grade)["right"], false);
  EXPECT_DOUBLE_EQ(reward_of(grade)["correctness"], 0.5);
}

TEST(Reward, AQuickGradeIsOfItsOwnCases) {
  Json grade = with_cases(4, 4);
  grade["passed"]["core"]["of"] = 90;
  EXPECT_EQ(reward_of(grade)["right"], true);
  EXPECT_EQ(reward_of(grade)["correctness"], 1.0);
}

TEST(Reward, WhatDoesNotCompileHasNothing) {
  EXPECT_DOUBLE_EQ(reward_of(testing::graded("CE"))["shaped"], 0);
}

TEST(Reward, WhatWasNotTimedAddsNothing) {
  Json grade = with_cases(4, 4);
  grade["dimensions"]["performance"]["points"] = nullptr;
  const Json reward = reward_of(grade);
  EXPECT_TRUE(reward["dimensions"]["performance"].is_null());
  EXPECT_DOUBLE_EQ(reward["shaped"], 0.1 + 0.6);
}

}  // namespace
}  // namespace assay::serve
