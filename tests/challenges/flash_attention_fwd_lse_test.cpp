#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "shared/log_sum_exp.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

CheckResult judged(double got, double expected, double plain, double floor = 20 * kEps32) {
  RowJudge all("lse", {});
  judge_log_sum_exp("lse", 0, got, expected, plain, floor, all);
  CheckResult result;
  all.add_to(result);
  return result;
}

// Floats near 5.3 are 8 units of 2^-24 apart, those near 200 are 256: a plain result that happens to
// be exact must not make its neighbour many times worse.
TEST(JudgeLogSumExp, ANeighbouringFloatIsAboutAsAccurateAsTheNearest) {
  for (const float nearest : {0.3f, 1.7f, 5.3f, 200.1f, -77.7f}) {
    const double exact = nearest, neighbour = std::nextafter(nearest, 1e9f);
    const CheckResult result = judged(neighbour, exact, exact, 100 * kEps32);
    EXPECT_TRUE(result.pass) << nearest;
    EXPECT_LE(result.accuracy, 2.0) << nearest;
    EXPECT_GT(result.accuracy, 0.1) << nearest;
  }
}

TEST(JudgeLogSumExp, ErrorsBeyondTheFloorAndARoundingOfTheValueAreWrong) {
  EXPECT_TRUE(judged(100 + 119 * kEps32, 100, 100).pass);
  EXPECT_FALSE(judged(100 + 121 * kEps32, 100, 100).pass);
  EXPECT_TRUE(judged(100 + 399 * kEps32, 100, 100 + 100 * kEps32).pass) << "four times the plain";
}

TEST(JudgeLogSumExp, WhatIsNotFiniteMustMatch) {
  EXPECT_TRUE(judged(-kInf, -kInf, -kInf).pass);
  EXPECT_FALSE(judged(-1e30, -kInf, -kInf).pass);
  EXPECT_FALSE(judged(-kInf, 3, 3).pass);
  EXPECT_TRUE(judged(NAN, NAN, NAN).pass);
  EXPECT_FALSE(judged(0, NAN, NAN).pass);
}

}  // namespace
}  // namespace assay
