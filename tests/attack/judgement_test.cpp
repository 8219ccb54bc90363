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
  o.said_witness = true;
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
  o.gain = Gain{1.5, {1.05, 1.8}, {0.9, 1.1}};  // within the twin's gain over itself
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

// The results of one try with an honest outcome: a gain, no gain, or inconclusive.
const Gain kGained{1.5, {1.2, 1.8}, {0.9, 1.1}}, kClean{1, {0.95, 1.05}, {0.97, 1.03}},
    kNoisy{1.1, {0.7, 1.6}, {0.7, 1.5}};

TEST(Told, NoiseThatWouldHideAGainTellsNothing) {
  EXPECT_EQ(kGained.told(), Gain::Told::gained);
  EXPECT_EQ(kClean.told(), Gain::Told::nothing_gained);
  EXPECT_EQ(kNoisy.told(), Gain::Told::not_told);
  // Ruling out a gain needs no quiet machine, and a large gain shows through the noise.
  EXPECT_EQ((Gain{0.4, {0.3, 0.6}, {0.7, 1.5}}).told(), Gain::Told::nothing_gained);
  EXPECT_EQ((Gain{4, {3, 6}, {0.7, 1.5}}).told(), Gain::Told::gained);
}

TEST(Complaint, OneThatCannotBeToldHasNotPassed) {
  Observation o = seen(kHonest);
  o.gain = kNoisy;
  EXPECT_THAT(complaint(expecting({kHonest}), o), HasSubstr("not told"));
}

TEST(WorstOf, IsTheOneThatSaysMostAgainstTheAttack) {
  const Gain fast_and_clean{1.02, {1.0, 1.04}, {0.95, 1.05}};
  EXPECT_DOUBLE_EQ(worst_of(std::vector{fast_and_clean, kClean})->value, 1.02);
  // Neither a loss nor noise in other cases hides a gain in one case.
  EXPECT_DOUBLE_EQ(worst_of(std::vector{kClean, kGained, kNoisy})->value, 1.5);
  EXPECT_DOUBLE_EQ(worst_of(std::vector{fast_and_clean, kNoisy})->value, 1.1);
  const Gain told{1.2, {1.1, 1.3}, {1, 1}}, larger{3, {0.5, 4}, {0.3, 3}};
  EXPECT_DOUBLE_EQ(worst_of(std::vector{larger, told})->value, 1.2);
  EXPECT_FALSE(worst_of({}));
}

Observation told(const Gain& gain) {
  Observation o = seen(kHonest);
  o.gain = gain;
  return o;
}

TEST(Tries, EndWithTheFirstThatTellsNoGain) {
  Tries tries;
  tries.add(expecting({kHonest}), told(kNoisy));
  EXPECT_FALSE(tries.settled());
  tries.add(expecting({kHonest}), told(kClean));
  EXPECT_TRUE(tries.settled());
  EXPECT_FALSE(tries.gained());
}

TEST(Tries, AGainHasToBeOutweighed) {
  Tries tries;
  tries.add(expecting({kHonest}), told(kGained));
  EXPECT_FALSE(tries.settled());
  tries.add(expecting({kHonest}), told(kClean));
  EXPECT_FALSE(tries.settled());
  EXPECT_TRUE(tries.gained());
  tries.add(expecting({kHonest}), told(kClean));
  EXPECT_TRUE(tries.settled());
  EXPECT_FALSE(tries.gained());
  Tries thrice;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(thrice.settled());
    thrice.add(expecting({kHonest}), told(kGained));
  }
  EXPECT_TRUE(thrice.settled() && thrice.gained());
}

TEST(Tries, AreBounded) {
  Tries tries;
  for (int i = 0; i < 6; ++i) {
    tries.add(expecting({kHonest}), told(kNoisy));
    EXPECT_FALSE(tries.settled());
  }
  tries.add(expecting({kHonest}), told(kNoisy));
  EXPECT_TRUE(tries.settled());
}

TEST(Tries, OneIsEnoughWhereSomethingElseIsWrong) {
  Observation left = told(kGained);
  left.left_behind = {"file /tmp/x"};
  for (const Observation& o : {seen("WA"), left}) {
    Tries tries;
    tries.add(expecting({"WA", kHonest}), o);
    EXPECT_TRUE(tries.settled());
  }
  Observation points = told(kClean);
  points.points_gained = 3;
  Tries tries;
  tries.add(expecting({kHonest}), points);
  EXPECT_FALSE(tries.settled());
}

// Tests that depend on time may gain points in one run and none in the next.
TEST(Tries, PointsHaveToComeAgain) {
  Observation points = seen(kHonest);
  points.points_gained = 3;
  Tries always;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(always.settled());
    always.add(expecting({kHonest}), points);
  }
  EXPECT_TRUE(always.settled() && always.gained());
  Tries once;
  once.add(expecting({kHonest}), points);
  once.add(expecting({kHonest}), seen(kHonest));
  once.add(expecting({kHonest}), seen(kHonest));
  EXPECT_TRUE(once.settled());
  EXPECT_FALSE(once.gained());
}

Attack with_witness(Witness::Kind kind, const std::string& text,
                    std::vector<std::string> outcomes) {
  Attack a = expecting(std::move(outcomes));
  a.witnesses = {{kind, text}};
  return a;
}

TEST(Complaint, WithoutAWitnessTheRightOutcomeIsNotEnough) {
  Observation o = seen("WA");
  o.said_witness = false;
  EXPECT_EQ(complaint(expecting({"WA"}), o),
            "its mechanism did not run: it did not say its witness");
  o.outcome = kSkipped;
  EXPECT_EQ(complaint(expecting({"WA"}), o), "");
}

TEST(Witness, MayBeAVerdictAFindingOrTheCompilers) {
  Observation o = seen("SV");
  o.said_witness = false;
  o.detail = "basic: a race";
  o.log = "error: no passwd";
  EXPECT_TRUE(has_witness(with_witness(Witness::Kind::verdict, "SV", {"SV"}), o));
  EXPECT_FALSE(has_witness(with_witness(Witness::Kind::verdict, "PV", {"SV", "PV"}), o));
  EXPECT_TRUE(has_witness(with_witness(Witness::Kind::finding, "race", {"SV"}), o));
  EXPECT_FALSE(has_witness(with_witness(Witness::Kind::finding, "leak", {"SV"}), o));
  EXPECT_TRUE(has_witness(with_witness(Witness::Kind::compiler, "passwd", {"SV"}), o));
  EXPECT_THAT(complaint(with_witness(Witness::Kind::compiler, "shadow", {"SV"}), o),
              HasSubstr("did not run: no 'shadow' in the compiler's log"));
  Attack either = with_witness(Witness::Kind::finding, "leak", {"SV"});
  either.witnesses.push_back({Witness::Kind::finding, "race"});
  EXPECT_TRUE(has_witness(either, o));
}

TEST(Witness, IsALineOfItsOwnWithTheRowsId) {
  Attack a;
  a.id = "M12.inet";
  EXPECT_TRUE(says_witness(a, "x\nassay attack witness M12.inet\ny"));
  EXPECT_TRUE(says_witness(a, "assay attack witness M12.inet\n"));
  EXPECT_FALSE(says_witness(a, "assay attack witness M12.inet6\n"));
  EXPECT_FALSE(says_witness(a, "no assay attack witness M12.inet\n"));
  EXPECT_FALSE(says_witness(a, ""));
}

Attack canary(const std::string& mechanism) {
  Attack a = expecting({kHonest});
  a.hidden = {"secret"};
  a.canary = mechanism;
  return a;
}

// What each mechanism must report, and no other part of it.
Observation wrong_by(Mechanism mechanism) {
  Observation o = seen(kHonest);
  switch (mechanism) {
    case Mechanism::verdict: o.outcome = "WA"; break;
    case Mechanism::witness: o.said_witness = false; break;
    case Mechanism::log: o.log = "secret"; break;
    case Mechanism::speed: o.gain = kGained; break;
    case Mechanism::points: o.points_gained = 3; break;
    case Mechanism::neighbour: o.neighbour = "was OK"; break;
    case Mechanism::leftovers: o.left_behind = {"file /x"}; break;
    case Mechanism::hang: o.outcome = kHung; break;
    case Mechanism::death: o.outcome = kDied; break;
  }
  return o;
}

TEST(Canary, IsReportedByItsMechanismAndByNoOther) {
  for (const std::string& name : mechanism_names()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(complaint(canary(name), wrong_by(*mechanism_named(name))), "");
    EXPECT_THAT(complaint(canary(name), seen(kHonest)),
                HasSubstr("blind: its judgement of " + name));
    for (const std::string& other : mechanism_names()) {
      if (other == name) continue;
      EXPECT_THAT(complaint(canary(name), wrong_by(*mechanism_named(other))), HasSubstr("blind"));
    }
  }
}

TEST(Canary, SkippedIsNoReport) {
  EXPECT_EQ(complaint(canary("hang"), seen(kSkipped)), "");
  Observation both = wrong_by(Mechanism::points);
  both.neighbour = "was OK";
  EXPECT_EQ(complaint(canary("points"), both), "its neighbour: was OK");
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
  // A loss elsewhere hides no gain.
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
  o.said_witness = false;
  o.neighbour = "n";
  o.left_behind = {"a"};
  EXPECT_EQ(to_json(observation_from(to_json(o))), to_json(o));
  EXPECT_EQ(to_json(observation_from(to_json(seen("WA")))), to_json(seen("WA")));
  EXPECT_TRUE(observation_from(to_json(seen("WA"))).said_witness);
}

}  // namespace
}  // namespace assay::attack
