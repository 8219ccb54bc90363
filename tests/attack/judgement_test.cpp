#include "attack/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::attack {
namespace {
using ::testing::HasSubstr;

Attack expecting(std::vector<std::string> outcomes) {
  Attack a;
  a.expected = std::move(outcomes);
  return a;
}

Observation seen(const std::string& outcome) {
  Observation o;
  o.outcome = outcome;
  return o;
}

CaseResult result(const std::string& name, Verdict verdict, const std::string& detail = "") {
  CaseResult r;
  r.name = name;
  r.verdict = verdict;
  r.detail = detail;
  return r;
}

std::vector<TimingSample> rounds(const std::vector<double>& seconds) {
  std::vector<TimingSample> samples;
  for (const double s : seconds) samples.push_back({1.0, 1.0, s});
  return samples;
}

Score score_of(std::vector<Dimension> dimensions) {
  Score s;
  s.dimensions = std::move(dimensions);
  return s;
}
Dimension dimension(const std::string& name, double points, double low, double high) {
  return {name, points, 20, {low, high}, ""};
}

TEST(Outcome, IsTheWorstVerdictWithItsDetail) {
  CellResult cell;
  cell.cases = {result("a", Verdict::ok), result("b", Verdict::wrong_answer, "got 1\nmore"),
                result("c", Verdict::runtime_error, "SIGSEGV")};
  EXPECT_EQ(outcome_of(cell).outcome, "RE");
  EXPECT_EQ(outcome_of(cell).detail, "c: SIGSEGV");
  cell.build.verdict = Verdict::build_error;
  cell.build.log = "no\nsuch";
  EXPECT_EQ(outcome_of(cell).outcome, "CE");
  EXPECT_EQ(outcome_of(cell).detail, "no");
}

TEST(Outcome, HonestMeansThatSomethingPassed) {
  CellResult cell;
  EXPECT_EQ(outcome_of(cell).outcome, kSkipped);
  cell.cases = {result("a", Verdict::skipped, "no nvcc")};
  EXPECT_EQ(outcome_of(cell).outcome, kSkipped);
  EXPECT_EQ(outcome_of(cell).detail, "a: no nvcc");
  cell.cases = {result("a", Verdict::ok)};
  EXPECT_EQ(outcome_of(cell).outcome, kHonest);
  cell.cases.push_back(result("b", Verdict::unsupported));
  EXPECT_EQ(outcome_of(cell).outcome, "NS");
}

TEST(Complaint, AnExpectedOutcomeIsNone) {
  EXPECT_EQ(complaint(expecting({"WA"}), seen("WA")), "");
  EXPECT_EQ(complaint(expecting({"WA", kHonest}), seen(kHonest)), "");
  EXPECT_EQ(complaint(expecting({"WA"}), seen(kSkipped)), "");
}

TEST(Complaint, AnotherOutcomeIsOne) {
  EXPECT_THAT(complaint(expecting({"SV"}), seen(kHonest)), HasSubstr("honest is wrong"));
  EXPECT_THAT(complaint(expecting({"SV"}), seen("JE")), HasSubstr("JE is wrong"));
  EXPECT_THAT(complaint(expecting({kHonest}), seen(kHung)), HasSubstr("the harness hung"));
  EXPECT_THAT(complaint(expecting({kHonest}), seen(kDied)), HasSubstr("the harness died"));
}

TEST(Complaint, SoIsWhatItDidToOthers) {
  Observation o = seen("SV");
  o.neighbour = "was OK, is WA";
  o.left_behind = {"file /tmp/x", "process 7 (x)"};
  EXPECT_THAT(complaint(expecting({"SV"}), o), HasSubstr("its neighbour: was OK, is WA"));
  EXPECT_THAT(complaint(expecting({"SV"}), o),
              HasSubstr("left behind: file /tmp/x, process 7 (x)"));
}

TEST(Complaint, SoIsAHiddenTextInTheLog) {
  Attack a = expecting({"CE"});
  a.hidden = {"root:"};
  Observation o = seen("CE");
  o.log = "error: no such file";
  EXPECT_EQ(complaint(a, o), "");
  o.log = "error: root:x:0:0";
  EXPECT_THAT(complaint(a, o), HasSubstr("the compiler's log shows 'root:'"));
}

TEST(Complaint, AGainBeyondNoiseIsOne) {
  Observation o = seen(kHonest);
  o.gain = Gain{1.5, {1.2, 1.8}, {0.9, 1.1}};
  EXPECT_THAT(complaint(expecting({kHonest}), o), HasSubstr("1.50 times as fast"));
  o.gain = Gain{1.5, {1.05, 1.8}, {0.9, 1.1}};  // within what the twin gains over itself
  EXPECT_EQ(complaint(expecting({kHonest}), o), "");
  o.gain = Gain{1.5, {1.2, 1.8}, {0.8, 1.0}};  // noise goes both ways: 1 / 0.8
  EXPECT_EQ(complaint(expecting({kHonest}), o), "");
  o.gain = Gain{1.01, {1.01, 1.01}, {1, 1}};
  EXPECT_EQ(complaint(expecting({kHonest}), o), "");
}

TEST(Complaint, OfOneThatFailsSpeedIsNone) {
  Observation o = seen("WA");
  o.gain = Gain{60, {50, 70}, {1, 1}};
  EXPECT_EQ(complaint(expecting({"WA", kHonest}), o), "");
}

TEST(Complaint, MoreThanHalfAPointIsOne) {
  Observation o = seen(kHonest);
  o.points_gained = 0.5;
  EXPECT_EQ(complaint(expecting({kHonest}), o), "");
  o.points_gained = 0.6;
  EXPECT_THAT(complaint(expecting({kHonest}), o), HasSubstr("0.6 points more"));
}

TEST(IsOnlyGain, WhereNothingElseIsWrong) {
  Observation o = seen(kHonest);
  o.gain = Gain{1, {0.9, 1.1}, {0.9, 1.1}};
  EXPECT_FALSE(is_only_gain(expecting({kHonest}), o));
  o.points_gained = 3;
  EXPECT_TRUE(is_only_gain(expecting({kHonest}), o));
  o.points_gained.reset();
  o.gain = Gain{1.5, {1.2, 1.8}, {0.9, 1.1}};
  EXPECT_TRUE(is_only_gain(expecting({kHonest}), o));
  o.left_behind = {"file /tmp/x"};
  EXPECT_FALSE(is_only_gain(expecting({kHonest}), o));
  // Points that no clock gave.
  Observation memory = seen(kHonest);
  memory.points_gained = 3;
  EXPECT_FALSE(is_only_gain(expecting({kHonest}), memory));
}

TEST(GainOf, IsThePairedRatioOfRoundsThatAllTook) {
  const auto gain = gain_of(rounds({1, 2, 1, 2}), rounds({2, 4, 2, 4}), rounds({2, 4, 2, 4, 9}));
  ASSERT_TRUE(gain);
  EXPECT_NEAR(gain->value, 2, 1e-12);
  EXPECT_NEAR(gain->noise.low, 1, 1e-12);
  EXPECT_NEAR(gain->most_noise(), kLeastNoise, 1e-12);
  EXPECT_FALSE(gain_of({}, rounds({1}), rounds({1})));
  EXPECT_FALSE(gain_of(rounds({1}), std::vector<TimingSample>{{1.0, 1.0, {}}}, rounds({1})));
}

TEST(PointsGained, AddsWhatTheDimensionsHaveMore) {
  const Score twin = score_of({dimension("resources", 2, 2, 2), dimension("tests", 0, 0, 0)});
  EXPECT_DOUBLE_EQ(
      points_gained(score_of({dimension("resources", 10, 10, 10), dimension("tests", 5, 5, 5)}),
                    twin, nullptr),
      13);
  // What it loses elsewhere hides no gain.
  EXPECT_DOUBLE_EQ(
      points_gained(score_of({dimension("resources", 0, 0, 0), dimension("tests", 5, 5, 5)}), twin,
                    nullptr),
      5);
}

TEST(PointsGained, TakesOffWhatNoiseExplains) {
  const Score twin = score_of({dimension("performance", 10, 9, 11)});
  EXPECT_DOUBLE_EQ(points_gained(score_of({dimension("performance", 12, 10.5, 13)}), twin, nullptr),
                   0);
  EXPECT_DOUBLE_EQ(points_gained(score_of({dimension("performance", 18, 17, 19)}), twin, nullptr),
                   6);
  const Score again = score_of({dimension("performance", 12, 11, 13)});
  EXPECT_DOUBLE_EQ(points_gained(score_of({dimension("performance", 18, 17, 19)}), twin, &again),
                   2);
}

TEST(ObservationJson, GoesThereAndBack) {
  Observation o = seen(kHonest);
  o.detail = "d";
  o.log = "l";
  o.seconds = 3;
  o.gain = Gain{1.5, {1, 2}, {0.5, 1.5}};
  o.points_gained = 0.25;
  o.neighbour = "n";
  o.left_behind = {"a"};
  EXPECT_EQ(to_json(observation_from(to_json(o))), to_json(o));
  EXPECT_EQ(to_json(observation_from(to_json(seen("WA")))), to_json(seen("WA")));
}

}  // namespace
}  // namespace assay::attack
