#include "assay/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "assay/dtype.h"
#include "assay/random.h"

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

TEST(RowJudge, ANanOfThePlainResultCountsWhereverItStands) {
  EXPECT_EQ(judge({1, 1.003}, {1, 1}, {kNan, 1.001}, {1, 1}).pass,
            judge({1.003, 1}, {1, 1}, {1.001, kNan}, {1, 1}).pass);
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

TEST(RowJudge, WhatHardwareFlushesToZeroIsNoError) {
  // In rows of any length, by both ways of judging: with a scale of 0, and without one.
  for (const double scale : {2e-39, 0.0}) {
    Row got(9, 0), expected(9, -1e-39), scales(9, 2e-39);
    expected[8] = scale == 0 ? 0 : expected[8];
    scales[8] = scale;
    EXPECT_TRUE(judge(got, expected, expected, scales).pass);
    got[3] = 2e-32;
    EXPECT_FALSE(judge(got, expected, expected, scales).pass);
    got[3] = kNan;
    EXPECT_FALSE(judge(got, expected, expected, scales).pass);
  }
}

// If a sink takes nearly all the weight, the other weights are below the smallest normal float.
TEST(RowJudge, NorIsWhatAFlushedWeightWouldHaveAdded) {
  EXPECT_TRUE(judge({0, 0}, {1.35e-38, -3e-33}, {1.35e-38, -3e-33}, {1.35e-38, 3e-33}).pass);
  EXPECT_FALSE(judge({0, 0}, {1e-31, 0}, {1e-31, 0}, {1e-31, 1e-31}).pass);
}

TEST(RowJudge, WhatWasFlushedIsNotNamedAsTheWorst) {
  const CheckResult r = judge({0, 1 + 3e-6}, {-1e-39, 1}, {-1e-39, 1}, {1e-39, 1});
  EXPECT_EQ(r.detail.substr(0, 6), "y[0,1]");
}

TEST(RowJudge, CancelledRowsAreJudgedByTheirScale) {
  // The exact result is 0; an error of 1e-7 of the sum of magnitudes is rounding.
  EXPECT_TRUE(judge({1e-7, -1e-7}, {0, 0}, {0, 0}, {1, 1}).pass);
  EXPECT_FALSE(judge({1e-3, 0}, {0, 0}, {0, 0}, {1, 1}).pass);
}

TEST(RowJudge, AShortRowThatCancelsIsHeldToNoMoreThanItsElements) {
  // With 16 or more values, errors of 0.9 of the bound everywhere are too many, since they should
  // average out. A single value may be off by all that its scale allows.
  const auto all_off = [](std::size_t n, double by) {
    return judge(Row(n, by * 1e-6), Row(n, 0), Row(n, 0), Row(n, 1)).pass;
  };
  EXPECT_TRUE(all_off(1, 0.99));
  EXPECT_FALSE(all_off(1, 1.01));
  EXPECT_TRUE(all_off(4, 0.49));
  EXPECT_FALSE(all_off(4, 0.51));
  for (const std::size_t n : {16, 17, 100}) {
    EXPECT_TRUE(all_off(n, 0.24));
    EXPECT_FALSE(all_off(n, 0.26));
  }
  // Values that are not finite do not count: here one is left.
  EXPECT_TRUE(judge({0.99e-6, kNan, kInf}, {0, kNan, kInf}, {0, kNan, kInf}, {1, 1, 1}).pass);
}

TEST(RowJudge, APlainResultThatOverflowsSetsNoStandard) {
  EXPECT_FALSE(judge({2, 1}, {1, 1}, {kNan, 1}, {1, 1}).pass);
  EXPECT_TRUE(judge({1, 1}, {1, 1}, {kInf, 1}, {1, 1}).pass);
}

// The definition, element by element.
double worst_error(const Row& got, const Row& expected, const Row& scale) {
  double squares = 0, norm = 0, scale_norm = 0, most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(got[i] - expected[i]);
    squares += d * d;
    norm += expected[i] * expected[i];
    scale_norm += scale[i] * scale[i];
    most = std::max(most, d / scale[i]);
  }
  const double averaged = std::min(16.0, static_cast<double>(got.size()));
  return std::max(most, std::sqrt(squares / std::max(norm, scale_norm / averaged)));
}

TEST(RowJudge, RowsOfAnyLengthAndMagnitudeFollowTheDefinition) {
  Random random(3);
  for (const double unit : {1e-20, 1.0, 1e30}) {
    for (std::size_t n = 1; n <= 40; ++n) {
      Row got(n), expected(n), scale(n);
      for (std::size_t i = 0; i < n; ++i) {
        scale[i] = unit * random.uniform(0.5, 2);
        expected[i] = scale[i] * random.uniform(-1, 1) / 8;
        got[i] = expected[i] + scale[i] * random.uniform(-1e-7, 1e-7);
      }
      const CheckResult r = judge(got, expected, expected, scale);
      EXPECT_TRUE(r.pass);
      EXPECT_NEAR(*r.error, worst_error(got, expected, scale), 1e-9 * *r.error);
    }
  }
}

TEST(RowJudge, NamesTheWorstColumnWhereverItStands) {
  const Row expected(21, 1.0);
  for (std::size_t column = 0; column < expected.size(); ++column) {
    Row got(expected.size(), 1.0 + 2e-6);
    got[column] = 1.1;
    const CheckResult r = judge(got, expected, expected, expected);
    EXPECT_FALSE(r.pass);
    EXPECT_EQ(r.detail.rfind("y[0," + std::to_string(column) + "]", 0), 0u) << r.detail;
  }
}

TEST(RowJudge, ANanInALongRowIsSeenInEveryColumn) {
  const Row expected(19, 1.0);
  for (std::size_t column = 0; column < expected.size(); ++column) {
    Row got = expected;
    got[column] = kNan;
    EXPECT_FALSE(judge(got, expected, expected, expected).pass);
    Row wanted = expected;
    wanted[column] = kNan;
    EXPECT_FALSE(judge(expected, wanted, wanted, expected).pass);
    EXPECT_TRUE(judge(got, wanted, wanted, expected).pass);
  }
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
