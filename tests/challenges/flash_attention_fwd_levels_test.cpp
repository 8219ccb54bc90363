// What timed attention inputs hide from a submission that knows how they are drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "shared/score_levels.h"

namespace assay::attention {
namespace {

constexpr int kQueries = 2000, kKeys = 64, kDimensions = 16;
constexpr double kScale = 0.25;

// The scores of queries and keys that consist only of levels.
std::vector<std::vector<float>> scores(std::uint64_t seed, double scale = kScale) {
  ScoreLevels levels(seed, 1, kDimensions, scale);
  std::vector<std::vector<float>> keys(kKeys, std::vector<float>(kDimensions, 0)), all;
  for (auto& k : keys) levels.key(0, k.data());
  for (int i = 0; i < kQueries; ++i) {
    std::vector<float> q(kDimensions, 0), row;
    levels.query(0, q.data());
    for (const auto& k : keys) {
      double dot = 0;
      for (int d = 0; d < kDimensions; ++d) dot += double{q[d]} * k[d];
      row.push_back(static_cast<float>(scale * dot));
    }
    all.push_back(row);
  }
  return all;
}

template <class Test>
double share(const std::vector<std::vector<float>>& rows, Test test) {
  return static_cast<double>(std::ranges::count_if(rows, test)) / static_cast<double>(rows.size());
}

TEST(ScoreLevels, HalfOfTheQueriesHaveNone) {
  EXPECT_NEAR(share(scores(1), [](const auto& r) { return r[0] == 0; }), 0.5, 0.05);
}

TEST(ScoreLevels, ExponentialsWithoutTheMaximumOverflowOrVanishInManyRows) {
  const auto rows = scores(2);
  const auto sum = [](const std::vector<float>& row) {
    float total = 0;
    for (const float s : row) total += std::exp(s);
    return total;
  };
  EXPECT_GT(share(rows, [&](const auto& r) { return std::isinf(sum(r)); }), 0.08);
  EXPECT_GT(share(rows, [&](const auto& r) { return sum(r) == 0; }), 0.01);
}

TEST(ScoreLevels, ARowSpansManyPowersOfE) {
  const auto span = [](const std::vector<float>& r) {
    const auto [least, most] = std::ranges::minmax(r);
    return most - least;
  };
  EXPECT_GT(share(scores(3), [&](const auto& r) { return span(r) > 15; }), 0.15);
}

TEST(ScoreLevels, EachHeadHasADirectionOfItsOwn) {
  ScoreLevels levels(4, 2, kDimensions, kScale);
  std::vector<float> a(kDimensions, 0), b(kDimensions, 0);
  levels.key(0, a.data());
  levels.key(1, b.data());
  double dot = 0, aa = 0, bb = 0;
  for (int d = 0; d < kDimensions; ++d) {
    dot += double{a[d]} * b[d];
    aa += double{a[d]} * a[d];
    bb += double{b[d]} * b[d];
  }
  EXPECT_LT(std::abs(dot), 0.9 * std::sqrt(aa * bb));
}

TEST(ScoreLevels, ScoresThatAreAllZeroStaySo) {
  for (const auto& row : scores(5, 0)) {
    for (const float s : row) EXPECT_EQ(s, 0);
  }
}

}  // namespace
}  // namespace assay::attention
