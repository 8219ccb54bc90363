// Against values computed by hand and by other programs.
#include "compare/rank_correlation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace assay::compare {
namespace {

using List = std::vector<double>;

TEST(RankCorrelation, TheSameOrderIsOneAndTheReverseMinusOne) {
  const List x{1, 2, 3, 40}, up{0.1, 0.2, 5, 6}, down{9, 8, 2, -1};
  EXPECT_DOUBLE_EQ(*kendall_tau_b(x, up), 1);
  EXPECT_DOUBLE_EQ(*spearman_rho(x, up), 1);
  EXPECT_DOUBLE_EQ(*kendall_tau_b(x, down), -1);
  EXPECT_DOUBLE_EQ(*spearman_rho(x, down), -1);
}

// Five of six pairs agree: (5 - 1) / 6. Ranks differ by one twice: 1 - 6 * 2 / (4 * 15).
TEST(RankCorrelation, OneSwapByHand) {
  const List x{1, 2, 3, 4}, y{1, 3, 2, 4};
  EXPECT_DOUBLE_EQ(*kendall_tau_b(x, y), 4.0 / 6);
  EXPECT_DOUBLE_EQ(*spearman_rho(x, y), 0.8);
}

// Of the three pairs one is tied in x, and two agree: 2 / sqrt(2 * 3). Ranks are 1, 2.5, 2.5 and 1,
// 2, 3: covariance 1.5, squares 1.5 and 2.
TEST(RankCorrelation, ATieByHand) {
  const List x{1, 5, 5}, y{1, 2, 3};
  EXPECT_DOUBLE_EQ(*kendall_tau_b(x, y), 2 / std::sqrt(6.0));
  EXPECT_DOUBLE_EQ(*spearman_rho(x, y), 1.5 / std::sqrt(3.0));
  EXPECT_DOUBLE_EQ(*kendall_tau_b(y, x), *kendall_tau_b(x, y));
}

// The examples in the documentation of SciPy's kendalltau and spearmanr.
TEST(RankCorrelation, KnownValuesWithTies) {
  EXPECT_NEAR(*kendall_tau_b(List{12, 2, 1, 12, 2}, List{1, 4, 7, 1, 0}), -0.47140452079103173,
              1e-15);
  EXPECT_NEAR(*spearman_rho(List{1, 2, 3, 4, 5}, List{5, 6, 7, 8, 7}), 0.82078268166812329, 1e-15);
}

// Marks and scores with ties in both. Expected values from an enumeration of pairs, and from
// Pearson's correlation of ranks in Python's statistics module.
TEST(RankCorrelation, MarksAndScores) {
  const List marks{7, 7, 3.5, 9, 4, 4, 4, 1, 10, 6}, scores{59, 91, 59, 95, 20, 80, 33, 0, 88, 60};
  EXPECT_NEAR(*kendall_tau_b(marks, scores), 0.6121460921524144, 1e-15);
  EXPECT_NEAR(*spearman_rho(marks, scores), 0.7747504023720219, 1e-15);
}

TEST(RankCorrelation, WithoutTwoValuesThereIsNone) {
  const List same{3, 3, 3}, other{1, 2, 3}, one{1}, none;
  for (const auto& correlation : {kendall_tau_b, spearman_rho}) {
    EXPECT_FALSE(correlation(same, other));
    EXPECT_FALSE(correlation(other, same));
    EXPECT_FALSE(correlation(one, one));
    EXPECT_FALSE(correlation(none, none));
  }
}

TEST(RankCorrelation, RefusesWhatDoesNotPair) {
  const List two{1, 2}, three{1, 2, 3}, nan{1, std::numeric_limits<double>::quiet_NaN()};
  for (const auto& correlation : {kendall_tau_b, spearman_rho}) {
    EXPECT_THROW(correlation(two, three), std::invalid_argument);
    EXPECT_THROW(correlation(two, nan), std::invalid_argument);
    EXPECT_THROW(correlation(nan, two), std::invalid_argument);
  }
}

}  // namespace
}  // namespace assay::compare
