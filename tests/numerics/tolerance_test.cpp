#include "assay/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "assay/dtype.h"

namespace assay {
namespace {

using Row = std::vector<double>;

constexpr double kInf = HUGE_VAL;
const double kNan = std::nan("");

CheckResult judge(const Row& got, const Row& expected, const Row& plain, const Row& scale,
                  ToleranceRule rule = {4, 1e-6}) {
  RowJudge judge("y", rule);
  judge.row(0, got, expected, plain, scale);
  CheckResult result;
  judge.add_to(result);
  return result;
}

TEST(RowJudge, AcceptsExactResults) {
  const CheckResult r = judge({1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3});
  EXPECT_TRUE(r.pass);
  EXPECT_EQ(*r.error, 0);
}

TEST(RowJudge, TheFloorBoundsElements) {
  EXPECT_TRUE(judge({1 + 0.9e-6, 1}, {1, 1}, {1, 1}, {1, 1}).pass);
  const CheckResult r = judge({1 + 3e-6, 1}, {1, 1}, {1, 1}, {1, 1});
  EXPECT_FALSE(r.pass);
  EXPECT_EQ(r.detail.substr(0, 6), "y[0,0]");
}

TEST(RowJudge, FourTimesThePlainErrorIsAllowed) {
  // plain errs by 1e-3 in the element, so 3.9e-3 passes and 4.1e-3 does not.
  EXPECT_TRUE(judge({1.0039, 0}, {1, 0}, {1.001, 0}, {1, 1}).pass);
  EXPECT_FALSE(judge({1.0041, 0}, {1, 0}, {1.001, 0}, {1, 1}).pass);
}

TEST(RowJudge, RejectsNanZeroAndUntouchedOutputs) {
  const Row expected{1, -2, 3}, scale{1, 2, 3};
  EXPECT_FALSE(judge({kNan, kNan, kNan}, expected, expected, scale).pass);
  EXPECT_FALSE(judge({1, kNan, 3}, expected, expected, scale).pass);
  EXPECT_FALSE(judge({0, 0, 0}, expected, expected, scale).pass);
  EXPECT_FALSE(judge({1, kInf, 3}, expected, expected, scale).pass);
}

TEST(RowJudge, NonFiniteValuesMustMatchInKind) {
  const Row expected{kNan, kInf, -kInf, 1}, scale{1, 1, 1, 1};
  EXPECT_TRUE(judge({kNan, kInf, -kInf, 1}, expected, expected, scale).pass);
  EXPECT_FALSE(judge({0, kInf, -kInf, 1}, expected, expected, scale).pass);
  EXPECT_FALSE(judge({kNan, -kInf, -kInf, 1}, expected, expected, scale).pass);
  EXPECT_FALSE(judge({kNan, 1e300, -kInf, 1}, expected, expected, scale).pass);
}

TEST(RowJudge, AScaleOfZeroDemandsExactness) {
  EXPECT_TRUE(judge({0, 1}, {0, 1}, {0, 1}, {0, 1}).pass);
  EXPECT_FALSE(judge({1e-30, 1}, {0, 1}, {0, 1}, {0, 1}).pass);
}

TEST(RowJudge, CancelledRowsAreJudgedByTheirScale) {
  // The exact result is 0; an error of 1e-7 of what was added up is rounding.
  EXPECT_TRUE(judge({1e-7, -1e-7}, {0, 0}, {0, 0}, {1, 1}).pass);
  EXPECT_FALSE(judge({1e-3, 0}, {0, 0}, {0, 0}, {1, 1}).pass);
}

TEST(RowJudge, APlainResultThatOverflowsSetsNoStandard) {
  EXPECT_FALSE(judge({2, 1}, {1, 1}, {kNan, 1}, {1, 1}).pass);
  EXPECT_TRUE(judge({1, 1}, {1, 1}, {kInf, 1}, {1, 1}).pass);
}

TEST(RowJudge, MergeKeepsTheFirstFailure) {
  RowJudge a("y", {4, 1e-6}), b("y", {4, 1e-6});
  a.row(7, Row{2}, Row{1}, Row{1}, Row{1});
  b.row(3, Row{5}, Row{1}, Row{1}, Row{1});
  a.merge(b);
  CheckResult result;
  a.add_to(result);
  EXPECT_FALSE(result.pass);
  EXPECT_EQ(result.detail.substr(0, 6), "y[3,0]");
  EXPECT_EQ(*result.error, 4);
}

TEST(Fail, TheFirstDetailStays) {
  CheckResult result;
  fail(result, "first");
  fail(result, "second");
  EXPECT_FALSE(result.pass);
  EXPECT_EQ(result.detail, "first");
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(bf16_to_float(float_to_bf16(1.0f)), 1.0f);
  EXPECT_EQ(float_to_bf16(1.00390625f), 0x3f80);  // half way: to even
  EXPECT_EQ(float_to_bf16(1.01171875f), 0x3f82);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::nanf("")))));
}

}  // namespace
}  // namespace assay
