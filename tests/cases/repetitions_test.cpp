#include "cases/repetitions.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::cases {
namespace {

CaseSpec spec_of(int repetitions, int naive_repetitions) {
  CaseSpec spec;
  spec.repetitions = repetitions;
  spec.naive_repetitions = naive_repetitions;
  return spec;
}

// Par takes a second. The submission takes `seconds`, and `spread` times as long in every other
// round.
std::vector<TimingSample> rounds(int n, double seconds, double spread = 1) {
  std::vector<TimingSample> samples;
  for (int i = 0; i < n; ++i) {
    samples.push_back({std::nullopt, 1.0, i % 2 == 0 ? seconds : seconds * spread});
  }
  return samples;
}

const Repetitions kFull(spec_of(11, 3), false), kQuick(spec_of(11, 3), true);

TEST(Repetitions, AreThoseOfTheSpecWhereTheRatioIsSteady) {
  for (int round = -1; round < 11; ++round) EXPECT_TRUE(kFull.wants(round, {})) << round;
  const auto steady = rounds(11, 2);
  EXPECT_FALSE(kFull.wants(11, {.called = 1, .extended = 0, .samples = steady}));
}

TEST(Repetitions, GoOnWhileTheRatioIsUnsteadyButNotForEver) {
  const auto unsteady = rounds(43, 2, 1.5);
  const Measured measured{.called = 1, .extended = 0.1, .samples = unsteady};
  EXPECT_TRUE(kFull.wants(11, measured));
  EXPECT_TRUE(kFull.wants(4 * 11 - 1, measured));
  EXPECT_FALSE(kFull.wants(4 * 11, measured));
}

TEST(Repetitions, EndWhenTheExtensionHasTakenItsTime) {
  const auto unsteady = rounds(12, 2, 1.5);
  EXPECT_TRUE(kFull.wants(12, {.called = 1, .extended = kExtensionBudget, .samples = unsteady}));
  EXPECT_FALSE(
      kFull.wants(12, {.called = 1, .extended = kExtensionBudget + 0.01, .samples = unsteady}));
}

TEST(Repetitions, ASlowSubmissionIsMeasuredLessOftenButNotTooSeldom) {
  const Measured slow{.called = kSubmissionBudget + 1, .extended = 0, .samples = {}};
  EXPECT_TRUE(kFull.wants(kLeastRepetitions - 1, slow));
  EXPECT_FALSE(kFull.wants(kLeastRepetitions, slow));
  EXPECT_TRUE(
      kFull.wants(kLeastRepetitions, {.called = kSubmissionBudget, .extended = 0, .samples = {}}));
}

TEST(Repetitions, AQuickRunHasFewAndNoExtension) {
  const auto unsteady = rounds(3, 2, 1.5);
  EXPECT_TRUE(kQuick.wants(kQuickRepetitions - 1, {}));
  EXPECT_FALSE(kQuick.wants(kQuickRepetitions, {.called = 0, .extended = 0, .samples = unsteady}));
}

TEST(Repetitions, NaiveKeepsToItsOwnAndWarmsUpOnlyInQuickRuns) {
  EXPECT_FALSE(kFull.naive_takes_part(-1));
  EXPECT_TRUE(kFull.naive_takes_part(0));
  EXPECT_TRUE(kFull.naive_takes_part(2));
  EXPECT_FALSE(kFull.naive_takes_part(3));
  EXPECT_TRUE(kQuick.naive_takes_part(-1));
  EXPECT_TRUE(kQuick.naive_takes_part(0));
  EXPECT_FALSE(kQuick.naive_takes_part(1));
}

TEST(Repetitions, ExtensionBeginsBehindThoseOfTheSpec) {
  EXPECT_FALSE(kFull.is_extension(10));
  EXPECT_TRUE(kFull.is_extension(11));
}

TEST(Settled, NeedsANarrowIntervalOverEnoughRounds) {
  EXPECT_TRUE(settled(rounds(5, 2)));
  EXPECT_FALSE(settled(rounds(4, 2)));
  EXPECT_FALSE(settled(rounds(11, 2, 1.5)));
  EXPECT_TRUE(settled(rounds(11, 2, 1.02)));
}

TEST(Settled, RoundsThatParSpentDisturbedDoNotCount) {
  std::vector<TimingSample> samples = rounds(8, 2);
  for (int i = 0; i < 4; ++i) samples[static_cast<std::size_t>(i)].par = 2.0;
  EXPECT_FALSE(settled(samples)) << "four calm rounds are too few";
  samples.push_back(samples.back());
  EXPECT_TRUE(settled(samples));
}

}  // namespace
}  // namespace assay::cases
