#include "grade/grade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "assay/challenge.h"
#include "grade/dimensions.h"
#include "grade/reason.h"
#include "measure/machine.h"
#include "records/floor.h"
#include "records/lookup.h"
#include "records/simulated_work.h"
#include "samples.h"

namespace assay {
namespace {

using testing::case_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::mutant_of;
using testing::sample_cell;
using testing::sample_spec;
using testing::sample_times;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const Dimension& dimension(const Score& s, const std::string& name) {
  for (const Dimension& d : s.dimensions) {
    if (d.name == name) return d;
  }
  throw std::out_of_range(name);
}

auto note(Note::Kind kind, const char* says) {
  return ::testing::AllOf(::testing::Field(&Note::kind, kind),
                          ::testing::Field(&Note::text, HasSubstr(says)));
}

Score graded(const std::function<void(CellResult&)>& change) {
  const ChallengeSpec spec = sample_spec();
  CellResult cell = sample_cell(spec);
  change(cell);
  return grade(spec, cell);
}

// --- what one change costs ---------------------------------------------------

struct Cost {
  const char* name;
  std::function<void(CellResult&)> change;
  const char* dimension;
  double points;  // of that dimension
};

class Costs : public ::testing::TestWithParam<Cost> {};

TEST_P(Costs, AreThoseComputedByHand) {
  const Score s = graded(GetParam().change);
  ASSERT_TRUE(dimension(s, GetParam().dimension).points);
  EXPECT_NEAR(*dimension(s, GetParam().dimension).points, GetParam().points, 1e-9);
}

void fail_case(CellResult& c, const char* name) {
  case_of(c, name).verdict = Verdict::wrong_answer;
}

const Cost kCosts[] = {
    {"perfect_correctness", [](CellResult&) {}, "correctness", 50},
    {"perfect_accuracy", [](CellResult&) {}, "accuracy", 5},
    {"perfect_resources", [](CellResult&) {}, "resources", 10},
    {"perfect_completeness", [](CellResult&) {}, "completeness", 10},
    {"perfect_tests", [](CellResult&) {}, "tests", 5},
    // core share 0.4, one of two: 50 * 0.4 / 2 lost
    {"core_case", [](CellResult& c) { fail_case(c, "core_b"); }, "correctness", 40},
    // edge share 0.2, weight 3 of 4: 50 * 0.2 * 0.75 lost
    {"edge_case_by_weight", [](CellResult& c) { fail_case(c, "edge_b"); }, "correctness", 42.5},
    {"trap_case", [](CellResult& c) { fail_case(c, "trap_a"); }, "correctness", 40},
    {"unsupported_trap", [](CellResult& c) { case_of(c, "trap_a").verdict = Verdict::unsupported; },
     "correctness", 40},
    {"completeness_case_leaves_correctness", [](CellResult& c) { fail_case(c, "bf16_a"); },
     "correctness", 50},
    // median error 2 on the scale from 1 to 4 is half way
    {"accuracy_half_way",
     [](CellResult& c) {
       for (CaseResult& r : c.cases) {
         if (r.accuracy) r.accuracy = 2;
       }
     },
     "accuracy", 2.5},
    {"accuracy_better_than_plain_is_full",
     [](CellResult& c) {
       for (CaseResult& r : c.cases) {
         if (r.accuracy) r.accuracy = 0;
       }
     },
     "accuracy", 5},
    {"accuracy_nan_is_none",
     [](CellResult& c) {
       for (CaseResult& r : c.cases) {
         if (r.accuracy) r.accuracy = kNaN;
       }
     },
     "accuracy", 0},
    // 8 cases have an accuracy: 5 failed ones make the median infinite
    {"accuracy_of_failed_cases_counts_as_infinite",
     [](CellResult& c) {
       for (const char* n : {"core_a", "core_b", "edge_a", "trap_a", "trap_b"}) fail_case(c, n);
     },
     "accuracy", 0},
    // 4096 on the logarithmic scale from 1024 to 16384 is half way; weight 1 of 4
    {"resource_logarithmic", [](CellResult& c) { case_of(c, "core_a").metrics[0].value = 4096; },
     "resources", 8.75},
    // 2.5 on the linear scale from 0 to 10 is 0.75; weight 3 of 4
    {"resource_linear", [](CellResult& c) { case_of(c, "core_b").metrics[1].value = 2.5; },
     "resources", 10 - 7.5 * 0.25},
    {"resource_of_a_failed_case", [](CellResult& c) { fail_case(c, "core_b"); }, "resources", 2.5},
    {"resource_nan", [](CellResult& c) { case_of(c, "core_b").metrics[1].value = kNaN; },
     "resources", 2.5},
    // bf16 has weight 3 of 4 and needs both of its cases
    {"capability_missing_one_case", [](CellResult& c) { fail_case(c, "bf16_b"); }, "completeness",
     2.5},
    {"capability_unsupported",
     [](CellResult& c) { case_of(c, "strided").verdict = Verdict::unsupported; }, "completeness",
     7.5},
    {"own_tests_miss_one",
     [](CellResult& c) { mutant_of(c, "wrong_c").verdict = TestVerdict::accepted; }, "tests", 3.75},
    {"own_tests_reject_a_correct_one",
     [](CellResult& c) { mutant_of(c, "par").verdict = TestVerdict::rejected; }, "tests", 0},
    {"own_tests_absent",
     [](CellResult& c) {
       c.mutants.clear();
       c.tests_note = {Note::Kind::no_tests, "ships no test.cpp"};
     },
     "tests", 0},
    // timed_b, weight 3 of 4
    {"timed_case_failed", [](CellResult& c) { fail_case(c, "timed_b"); }, "performance", 5},
};

INSTANTIATE_TEST_SUITE_P(Grade, Costs, ::testing::ValuesIn(kCosts),
                         [](const auto& cost) { return std::string(cost.param.name); });

// --- total -------------------------------------------------------------------

TEST(Grade, PerfectCellScoresHundred) {
  const Score s = graded([](CellResult&) {});
  ASSERT_TRUE(s.total);
  EXPECT_NEAR(*s.total, 100, 0.2);  // the noise of the samples is within 1 %
  EXPECT_LE(*s.total, 100);
  EXPECT_EQ(s.letter, "A");
  EXPECT_EQ(s.verdict, Verdict::ok);
  EXPECT_FALSE(s.capped);
  EXPECT_THAT(s.flags, IsEmpty());
  EXPECT_LE(s.interval.low, *s.total);
  EXPECT_GE(s.interval.high, *s.total);
}

TEST(Grade, FailedCoreCaseCapsTheTotal) {
  const Score s = graded([](CellResult& c) { fail_case(c, "core_b"); });
  EXPECT_TRUE(s.capped);
  EXPECT_EQ(*s.total, 59);
  EXPECT_LE(s.interval.high, 59);
  EXPECT_EQ(s.letter, "D");
  EXPECT_EQ(s.verdict, Verdict::wrong_answer);
}

TEST(Grade, UnsupportedCoreCaseCapsToo) {
  const Score s =
      graded([](CellResult& c) { case_of(c, "core_b").verdict = Verdict::unsupported; });
  EXPECT_TRUE(s.capped);
  EXPECT_EQ(s.verdict, Verdict::unsupported);
}

TEST(Grade, TheCapDoesNotRaise) {
  const Score s = graded([](CellResult& c) {
    for (CaseResult& r : c.cases) r.verdict = Verdict::runtime_error;
  });
  EXPECT_TRUE(s.capped);
  EXPECT_NEAR(*s.total, 5, 1e-9);  // the submission's own tests still work
  EXPECT_EQ(s.letter, "F");
  EXPECT_EQ(s.verdict, Verdict::runtime_error);
}

TEST(Grade, UnsupportedCapabilityIsNoFailure) {
  const Score s =
      graded([](CellResult& c) { case_of(c, "strided").verdict = Verdict::unsupported; });
  EXPECT_EQ(s.verdict, Verdict::ok);
  EXPECT_NEAR(*s.total, 97.5, 0.2);
}

TEST(Grade, VerdictIsTheWorstByPrecedence) {
  const Score s = graded([](CellResult& c) {
    fail_case(c, "edge_a");
    case_of(c, "trap_b").verdict = Verdict::time_limit;
    case_of(c, "timed_a").verdict = Verdict::output_limit;
  });
  EXPECT_EQ(s.verdict, Verdict::time_limit);
}

TEST(Grade, WhatDoesNotBuildScoresZero) {
  for (const Verdict v : {Verdict::build_error, Verdict::build_limit}) {
    const Score s = graded([v](CellResult& c) {
      c.build.verdict = v;
      c.cases.clear();
      c.mutants.clear();
    });
    EXPECT_EQ(s.total, 0);
    EXPECT_EQ(s.letter, "F");
    EXPECT_EQ(s.verdict, v);
    for (const Dimension& d : s.dimensions) EXPECT_EQ(d.points, 0) << d.name;
  }
}

TEST(Grade, WhatDoesNotLoadScoresZero) {
  const Score s = graded([](CellResult& c) {
    c.cases.resize(6);
    for (CaseResult& r : c.cases) r.verdict = Verdict::load_error;
  });
  EXPECT_EQ(s.total, 0);
  EXPECT_EQ(s.verdict, Verdict::load_error);
  EXPECT_THAT(s.flags, IsEmpty());
}

TEST(Grade, HarnessErrorsAreNeverScored) {
  const Score build = graded([](CellResult& c) { c.build.verdict = Verdict::harness_error; });
  EXPECT_FALSE(build.total);
  EXPECT_EQ(build.letter, "");
  const Score one = graded([](CellResult& c) {
    case_of(c, "edge_a").verdict = Verdict::harness_error;
    fail_case(c, "core_a");
  });
  EXPECT_FALSE(one.total);
  EXPECT_EQ(one.verdict, Verdict::harness_error);
  EXPECT_FALSE(dimension(one, "correctness").points);
}

TEST(Grade, TimingThatDidNotRunLeavesNoTotal) {
  const Score s = graded([](CellResult& c) {
    for (const char* n : {"timed_a", "timed_b"}) {
      case_of(c, n).verdict = Verdict::skipped;
      case_of(c, n).detail = "timing was switched off";
    }
  });
  EXPECT_FALSE(s.total);
  EXPECT_FALSE(dimension(s, "performance").points);
  EXPECT_THAT(dimension(s, "performance").why, HasSubstr("timing was switched off"));
  EXPECT_EQ(*dimension(s, "correctness").points, 50);
  EXPECT_THAT(s.flags, IsEmpty());
}

TEST(Grade, AbsentCasesAreNotRun) {
  const Score s = graded([](CellResult& c) { c.cases.erase(c.cases.begin()); });
  EXPECT_FALSE(s.total);
  EXPECT_THAT(dimension(s, "correctness").why, HasSubstr("not run: 1 of 6 cases"));
}

TEST(Grade, NothingRunIsNoZero) {
  const Score s = graded([](CellResult& c) {
    c.cases.clear();
    c.mutants.clear();
  });
  EXPECT_FALSE(s.total);
  EXPECT_EQ(s.verdict, Verdict::skipped);
}

TEST(Grade, WhatNeedsAGpuIsNoZero) {
  const Score s = graded([](CellResult& c) {
    for (CaseResult& r : c.cases) {
      r.verdict = Verdict::needs_gpu;
      r.detail = "needs a GPU (stacksave.u64)";
    }
  });
  EXPECT_FALSE(s.total);
  EXPECT_EQ(s.verdict, Verdict::needs_gpu);
  EXPECT_THAT(dimension(s, "correctness").why, HasSubstr("stacksave.u64"));
  EXPECT_THAT(s.flags, IsEmpty());
}

TEST(Grade, WhatNeedsAGpuIsAFailureBesideAFailure) {
  const Score s = graded([](CellResult& c) {
    fail_case(c, "edge_b");
    case_of(c, "core_b").verdict = Verdict::needs_gpu;
    case_of(c, "timed_b").verdict = Verdict::needs_gpu;
  });
  ASSERT_TRUE(s.total) << "the failure stands";
  EXPECT_TRUE(s.capped);
  EXPECT_EQ(s.verdict, Verdict::wrong_answer);
  EXPECT_NEAR(*dimension(s, "correctness").points, 50 - 10 - 7.5, 1e-9);
  EXPECT_NEAR(*dimension(s, "performance").points, 5, 0.2);
  ASSERT_EQ(s.flags.size(), 1u) << "and is no quick run";
  EXPECT_EQ(s.flags[0].kind, Note::Kind::needs_gpu);
  EXPECT_THAT(s.flags[0].text, HasSubstr("count as failed: core_b, timed_b"));
}

// If nothing else failed and kernels ran: a required case is a failure, an optional one costs its
// capability and nothing else.
TEST(Grade, WhatNeedsAGpuBesideKernelsThatRanCosts) {
  const auto with = [](std::vector<const char*> names) {
    return graded([&](CellResult& c) {
      case_of(c, "core_a").metrics.push_back({"sim_launches", 1});
      for (const char* n : names) {
        CaseResult& r = case_of(c, n);
        r.verdict = Verdict::needs_gpu;
        r.accuracy.reset();
        r.metrics.clear();
      }
    });
  };
  const Score all = with({});
  EXPECT_THAT(all.flags, IsEmpty());
  const Score lost = with({"bf16_a", "bf16_b", "strided"});
  EXPECT_EQ(lost.verdict, Verdict::ok);
  EXPECT_EQ(dimension(lost, "completeness").points, 0);
  ASSERT_EQ(lost.flags.size(), 1u);
  EXPECT_THAT(lost.flags[0].text, AllOf(HasSubstr("3 of"), HasSubstr("capability lost: bf16")));
  for (const char* d : {"correctness", "accuracy", "performance", "resources"}) {
    EXPECT_NEAR(*dimension(lost, d).points, *dimension(all, d).points, 1e-9) << d;
  }
  const Score core = with({"core_b"});
  EXPECT_EQ(core.verdict, Verdict::needs_gpu);
  EXPECT_TRUE(core.capped);
  ASSERT_TRUE(core.total);
  EXPECT_LE(*core.total, 59);
  EXPECT_THAT(core.flags.at(0).text, HasSubstr("count as failed: core_b"));
}

TEST(Grade, WhatNeedsAGpuExceptInAQuickRunIsNoQuickRun) {
  const Score s = graded([](CellResult& c) {
    for (CaseResult& r : c.cases) {
      if (r.name != "core_a" && r.name != "trap_a" && r.name != "timed_a")
        r.verdict = Verdict::needs_gpu;
    }
    fail_case(c, "trap_a");
  });
  EXPECT_FALSE(is_quick(s));
  EXPECT_NEAR(*dimension(s, "correctness").points, 10, 1e-9) << "one of two core cases";
}

TEST(Grade, WhatIsNotSupportedCountsForAccuracyBesideAFailure) {
  const auto unsupported = [](CellResult& c) {
    for (const char* n : {"bf16_a", "bf16_b", "strided"})
      case_of(c, n).verdict = Verdict::unsupported;
  };
  EXPECT_NEAR(*dimension(graded(unsupported), "accuracy").points, 5, 1e-9);
  // 8 cases have an accuracy; 3 unsupported and 2 wrong ones make the median infinite.
  const Score s = graded([&](CellResult& c) {
    unsupported(c);
    for (const char* n : {"edge_a", "trap_a"}) fail_case(c, n);
  });
  EXPECT_EQ(dimension(s, "accuracy").points, 0);
}

TEST(Grade, WhatIsRequiredAndNotSupportedCountsForAccuracy) {
  const Score s = graded([](CellResult& c) {
    for (const char* n : {"core_a", "core_b", "edge_a", "trap_a", "trap_b"})
      case_of(c, n).verdict = Verdict::unsupported;
  });
  EXPECT_EQ(dimension(s, "accuracy").points, 0);
}

TEST(Grade, AMetricThatIsNotReportedEarnsNothing) {
  const Score s = graded([](CellResult& c) { case_of(c, "core_b").metrics.clear(); });
  ASSERT_TRUE(s.total);
  EXPECT_NEAR(*dimension(s, "resources").points, 2.5, 1e-9);
  EXPECT_THAT(dimension(s, "resources").why, HasSubstr("core_b reported no reads"));
}

TEST(Grade, OwnTestsThatTellTwinsApartEarnNothing) {
  const Score s =
      graded([](CellResult& c) { mutant_of(c, "wrong_c").verdict = TestVerdict::inconsistent; });
  EXPECT_EQ(dimension(s, "tests").points, 0);
  EXPECT_THAT(dimension(s, "tests").why, HasSubstr("something else than behaviour"));
  EXPECT_THAT(dimension(s, "tests").why, HasSubstr("wrong_c"));
}

TEST(Grade, OwnTestsThatRejectACorrectOneAreQuoted) {
  const Score s = graded([](CellResult& c) {
    mutant_of(c, "par").verdict = TestVerdict::rejected;
    mutant_of(c, "par").reason = "returned 3; its output ends: tie at 138";
  });
  EXPECT_THAT(dimension(s, "tests").why,
              HasSubstr("par (rejected: returned 3; its output ends: tie at 138)"));
}

TEST(Grade, OwnTestsThatRightlyRejectWhatTheHouseHoldsForRightLoseNothing) {
  const Score before = graded([](CellResult&) {});
  const Score s =
      graded([](CellResult& c) { mutant_of(c, "par").verdict = TestVerdict::house_fault; });
  EXPECT_EQ(dimension(s, "tests").points, dimension(before, "tests").points);
  EXPECT_GT(*dimension(s, "tests").points, 0);
  EXPECT_THAT(dimension(s, "tests").why,
              HasSubstr("they rightly reject, a fault of the house: par"));
}

TEST(Grade, OwnTestsToWhichNothingRightIsLeftAreNoZero) {
  const Score s = graded([](CellResult& c) {
    for (Mutant& m : c.mutants) {
      if (m.correct) m.verdict = TestVerdict::house_fault;
    }
  });
  EXPECT_FALSE(dimension(s, "tests").points);
  EXPECT_THAT(dimension(s, "tests").why, HasSubstr("fault of the house"));
}

TEST(Grade, OwnTestsThatDoNotBuildAcceptNothing) {
  const Score s =
      graded([](CellResult& c) { mutant_of(c, "naive").verdict = TestVerdict::not_built; });
  EXPECT_EQ(dimension(s, "tests").points, 0);
  EXPECT_THAT(dimension(s, "tests").why, HasSubstr("naive"));
}

TEST(Grade, OwnTestsThatTheHarnessCouldNotRunAreNoZero) {
  const Score s =
      graded([](CellResult& c) { mutant_of(c, "wrong_a").verdict = TestVerdict::not_run; });
  EXPECT_FALSE(dimension(s, "tests").points);
}

TEST(Grade, OwnTestsThatWereNotRunLeaveNoTotal) {
  const Score s = graded([](CellResult& c) {
    c.mutants.clear();
    c.tests_note = {Note::Kind::tests_not_run, "not run in a partial run"};
  });
  EXPECT_FALSE(dimension(s, "tests").points);
  EXPECT_FALSE(s.total);
}

TEST(Grade, RuleOverSeveralCasesTakesTheMedian) {
  ChallengeSpec spec = sample_spec();
  spec.resources = {{"reads", {"core_a", "core_b", "trap_a"}, "reads", 0, 10, 1, "", ""}};
  CellResult cell = sample_cell(spec);
  case_of(cell, "core_a").metrics = {{"reads", 1}};
  case_of(cell, "core_b").metrics = {{"reads", 9}};
  case_of(cell, "trap_a").metrics = {{"reads", 4}};
  EXPECT_NEAR(*dimension(grade(spec, cell), "resources").points, 6, 1e-9);
  fail_case(cell, "core_a");  // counts as 10
  EXPECT_NEAR(*dimension(grade(spec, cell), "resources").points, 1, 1e-9);
}

TEST(Grade, DimensionsOfNoWeightAreLeftOut) {
  ChallengeSpec spec = sample_spec();
  spec.weights.correctness = 55;
  spec.weights.accuracy = 0;
  CellResult cell = sample_cell(spec);
  for (CaseResult& r : cell.cases) r.accuracy.reset();
  const Score s = grade(spec, cell);
  EXPECT_EQ(s.dimensions.size(), 5u);
  EXPECT_NEAR(*s.total, 100, 0.2);
}

// --- quick -------------------------------------------------------------------

void make_quick(CellResult& c) {
  for (CaseResult& r : c.cases) {
    if (r.name != "core_a" && r.name != "trap_a" && r.name != "timed_a")
      r.verdict = Verdict::skipped;
  }
  c.mutants.clear();
  c.tests_note = {Note::Kind::tests_not_run, "not run in a partial run"};
}

TEST(Grade, QuickRunIsGradedOverWhatRan) {
  const Score s = graded(make_quick);
  ASSERT_TRUE(s.total);
  EXPECT_EQ(s.flags, (std::vector<Note>{{Note::Kind::quick, "quick"}}));
  EXPECT_NEAR(*s.total, 100, 0.2);
  EXPECT_FALSE(dimension(s, "completeness").points);
  EXPECT_FALSE(dimension(s, "tests").points);
  EXPECT_EQ(*dimension(s, "correctness").points, 50);
}

// Whether there are tests or not: none are run.
TEST(Grade, AQuickRunWithoutTestsLosesNothing) {
  const Score s = graded([](CellResult& c) {
    make_quick(c);
    c.tests_note = {Note::Kind::no_tests, "no test.cpp"};
  });
  EXPECT_FALSE(dimension(s, "tests").points);
  EXPECT_EQ(*s.total, *graded(make_quick).total);
}

// correctness 25 of 50 (core and trap have equal shares), accuracy 5 of 5 (one of two cases failed:
// median infinite, so 0), performance 20, resources 10 of 10: 55 of 85.
TEST(Grade, QuickTotalIsScaledToHundred) {
  const Score s = graded([](CellResult& c) {
    make_quick(c);
    fail_case(c, "trap_a");
    for (TimingSample& t : case_of(c, "timed_a").samples) t.submission = t.par;
  });
  ASSERT_TRUE(s.total);
  EXPECT_NEAR(*s.total, 100 * 55.0 / 85.0, 1e-9);
}

TEST(Grade, QuickRunWithoutItsTimedCaseIsIncomplete) {
  const Score s = graded([](CellResult& c) {
    make_quick(c);
    case_of(c, "timed_a").verdict = Verdict::skipped;
  });
  EXPECT_FALSE(s.total);
  EXPECT_THAT(s.flags, IsEmpty());
}

// --- performance -------------------------------------------------------------

Score timed(double seconds, int repetitions = 11) {
  return graded([=](CellResult& c) {
    case_of(c, "timed_a").samples = sample_times(seconds, repetitions);
    case_of(c, "timed_b").samples = sample_times(seconds, repetitions);
  });
}

TEST(Grade, SpeedIsLogarithmicBetweenNaiveAndPar) {
  EXPECT_NEAR(*dimension(timed(4), "performance").points, 0, 0.1);
  EXPECT_NEAR(*dimension(timed(2), "performance").points, 10, 0.1);  // half way from 4 to 1
  EXPECT_NEAR(*dimension(timed(std::sqrt(2.0)), "performance").points, 15, 0.1);
  EXPECT_NEAR(*dimension(timed(8), "performance").points, 0, 1e-12);
}

TEST(Grade, BeyondParIsShownAndNotScored) {
  const Score s = timed(0.5);
  EXPECT_EQ(*dimension(s, "performance").points, 20);
  ASSERT_EQ(s.speeds.size(), 2u);
  EXPECT_NEAR(s.speeds[0].ratio_to_par, 2, 0.01);
  EXPECT_NEAR(s.speeds[0].ratio_to_naive, 8, 0.04);
  EXPECT_EQ(s.speeds[0].points, 1);
}

// Naive takes 4 and par 1. The submission takes `seconds` times par's time in the median of the
// sample; the floor is `floor` times par's time.
Score timed_above(double floor, double seconds) {
  return graded([=](CellResult& c) {
    for (const char* n : {"timed_a", "timed_b"}) {
      CaseResult& r = case_of(c, n);
      r.samples = sample_times(seconds, 11);
      const double par = *r.samples[r.samples.size() / 2].par;
      add_metrics(r.metrics, LeastWork{.bytes = floor * par * 1e9, .flops = 1});
      r.metrics.push_back({kRoofBytes, 1e9});
      r.metrics.push_back({kRoofFlops, 1e9});
    }
  });
}

double performance_above(double floor, double seconds) {
  return *dimension(timed_above(floor, seconds), "performance").points;
}

TEST(Grade, TheFloorLeavesRoomAbovePar) {
  EXPECT_NEAR(performance_above(0.25, 4), 0, 0.2);
  EXPECT_NEAR(performance_above(0.25, 1), 17, 0.2);      // 85 %
  EXPECT_NEAR(performance_above(0.25, 2), 8.5, 0.2);     // half way from naive to par
  EXPECT_NEAR(performance_above(0.25, 0.5), 18.5, 0.2);  // half way from par to the floor
  EXPECT_NEAR(performance_above(0.25, 0.25), 20, 0.2);
  EXPECT_NEAR(timed_above(0.25, 0.5).speeds[0].ratio_to_floor, 0.5, 0.01);
  EXPECT_EQ(timed(1).speeds[0].ratio_to_floor, 0) << "none is known";
}

TEST(Grade, AParNearTheFloorEarnsWhatAStraightScaleGives) {
  const double straight = std::log(4) / std::log(4 / 0.95);
  EXPECT_NEAR(performance_above(0.95, 1), 20 * straight, 0.2);
  EXPECT_NEAR(performance_above(0.95, 0.95), 20, 0.2);
  EXPECT_NEAR(performance_above(1, 1), 20, 0.2);
}

TEST(Grade, AFloorThatParIsBelowEndsNothing) {
  EXPECT_NEAR(performance_above(3, 1), 20, 0.2);
  EXPECT_NEAR(performance_above(3, 0.5), 20, 0.2);
  EXPECT_THAT(timed_above(3, 0.5).flags, IsEmpty());
  EXPECT_NEAR(performance_above(3, 2), 10, 0.2) << "half way from naive to par, as without a floor";
}

TEST(Grade, FarBelowTheFloorIsAFinding) {
  EXPECT_NEAR(performance_above(0.5, 0.4), 20, 0.2) << "within what the roofline is known to";
  const Score s = timed_above(0.5, 0.25);
  EXPECT_EQ(*dimension(s, "performance").points, 0);
  EXPECT_THAT(dimension(s, "performance").why, HasSubstr("timed_a (faster than its floor)"));
  EXPECT_THAT(s.flags,
              ::testing::Contains(note(Note::Kind::other, "what it does is not the task")));
}

// For an answer on a real GPU, whose clock does not see the work of the host code.
TEST(Grade, WhatTheHostComputesBesideARealGpuEarnsNothing) {
  const auto performance = [](std::uint64_t to_host, std::uint64_t launches,
                              std::uint64_t of_naive) {
    return dimension(graded([=](CellResult& c) {
                       c.key.device = Device::cuda;
                       for (const char* n : {"timed_a", "timed_b"}) {
                         CaseResult& r = case_of(c, n);
                         r.samples = sample_times(1, 11);
                         SimulatedWork work;
                         work.counters.launches = launches;
                         work.to_host_bytes = to_host;
                         add_metrics(r.metrics, work);
                         work.counters.launches = 1;
                         work.to_host_bytes = of_naive;
                         add_metrics(r.metrics, work, kNaivePrefix);
                       }
                     }),
                     "performance");
  };
  EXPECT_NEAR(*performance(200'000, 1, 0).points, 20, 0.1);
  EXPECT_NEAR(*performance(300'000, 1, 300'000).points, 20, 0.1);
  EXPECT_EQ(*performance(300'000, 1, 0).points, 0);
  EXPECT_EQ(*performance(0, 0, 0).points, 0) << "no kernel ran";
  EXPECT_THAT(performance(300'000, 1, 0).why, HasSubstr("computes on the host: 0.3 MB"));
}

TEST(Grade, TimingNoiseBecomesAnInterval) {
  const Score s = timed(2);
  const Dimension& d = dimension(s, "performance");
  EXPECT_LT(d.interval.low, *d.points);
  EXPECT_GT(d.interval.high, *d.points);
  EXPECT_LT(d.interval.high - d.interval.low, 0.5);
  // Only performance varies.
  EXPECT_NEAR(s.interval.high - s.interval.low, d.interval.high - d.interval.low, 1e-9);
  EXPECT_LT(s.speeds[0].ratio_interval.low, s.speeds[0].ratio_to_par);
  EXPECT_GT(s.speeds[0].ratio_interval.high, s.speeds[0].ratio_to_par);
}

// Par has two threads, but only one core for most of the case; the submission has one thread.
TEST(Grade, RoundsThatParSpentDisturbedDoNotCount) {
  const Score s = graded([](CellResult& c) {
    for (TimingSample& t : case_of(c, "timed_a").samples) t.submission = 2 * *t.par;
    auto& samples = case_of(c, "timed_a").samples;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (i % 3 != 0) *samples[i].par *= 1.8;
    }
  });
  EXPECT_NEAR(s.speeds[0].ratio_to_par, 0.5, 0.01);
  EXPECT_NEAR(s.speeds[0].points, 0.5, 0.01);
}

TEST(Grade, FewRepetitionsAreFlagged) {
  EXPECT_THAT(timed(2, 2).flags, ::testing::Contains(note(Note::Kind::few_repetitions, "timed_a")));
  EXPECT_THAT(timed(2, 3).flags, IsEmpty());
}

TEST(Grade, MuchStolenTimeIsFlaggedOnce) {
  const auto with = [](double a, double b) {
    return graded([&](CellResult& c) {
             case_of(c, "timed_a").metrics.push_back({kStolenShare, a});
             case_of(c, "trap_a").metrics.push_back({kStolenShare, b});
           })
        .flags;
  };
  EXPECT_THAT(with(0.09, 0.1), IsEmpty());
  EXPECT_THAT(with(0.2, 0.62),
              ElementsAre(note(Note::Kind::stolen_time, "took 62 % of the processors")));
}

TEST(Grade, MuchThrottlingIsFlagged) {
  const auto throttled = [](double share) {
    return graded([=](CellResult& c) {
      case_of(c, "timed_b").metrics.push_back({kThrottledShare, share});
    });
  };
  EXPECT_THAT(throttled(0.1).flags, IsEmpty());
  EXPECT_THAT(
      throttled(0.2).flags,
      ElementsAre(note(Note::Kind::throttled, "held down in 20 % of the repetitions of timed_b")));
}

TEST(Grade, ClocksOfAGpuThatNothingWatchesAreFlagged) {
  const auto flags = [](Device device, bool watched) {
    return graded([=](CellResult& c) {
             c.key.device = device;
             for (const char* name : {"timed_a", "timed_b"}) {
               if (watched) case_of(c, name).metrics.push_back({kThrottledShare, 0});
             }
           })
        .flags;
  };
  EXPECT_THAT(flags(Device::cuda, false),
              ElementsAre(note(Note::Kind::clocks_unwatched, "held down in timed_a, timed_b")));
  EXPECT_THAT(flags(Device::cuda, true), IsEmpty());
  EXPECT_THAT(flags(Device::cpu, false), IsEmpty()) << "nothing holds down what a processor shows";
}

TEST(Grade, WrongTimedRepetitionFailsPerformanceAndIsFlagged) {
  const Score s = graded([](CellResult& c) { fail_case(c, "timed_a"); });
  EXPECT_NEAR(*dimension(s, "performance").points, 15, 0.1);
  EXPECT_THAT(s.flags, ::testing::Contains(note(Note::Kind::wrong_when_timed, "timed_a")));
  EXPECT_EQ(s.verdict, Verdict::wrong_answer);
}

// A reduction with room only for the partial sums of small shapes is not a right answer.
TEST(Grade, WhatIsWrongAtTheSizesOfSpeedAndMemoryIsACoreCaseThatFailed) {
  for (const Verdict verdict : {Verdict::wrong_answer, Verdict::runtime_error,
                                Verdict::device_error, Verdict::protocol_violation}) {
    const ChallengeSpec spec = sample_spec();
    CellResult cell = sample_cell(spec);
    case_of(cell, "timed_a").verdict = verdict;
    const Score s = grade(spec, cell);
    // core share 0.4, one of what are now three cases lost
    EXPECT_NEAR(*dimension(s, "correctness").points, 50 - 20.0 / 3, 1e-9);
    EXPECT_THAT(dimension(s, "correctness").why, HasSubstr("6 of 7 cases; failed: timed_a"));
    EXPECT_TRUE(s.capped);
    EXPECT_EQ(s.total, kFailedCoreCap);
    EXPECT_THAT(main_reason(cell, s), HasSubstr("timed case timed_a failed"));
  }
  for (const Verdict slow : {Verdict::time_limit, Verdict::idle_limit, Verdict::memory_limit}) {
    const Score s = graded([&](CellResult& c) { case_of(c, "timed_a").verdict = slow; });
    EXPECT_EQ(*dimension(s, "correctness").points, 50);
    EXPECT_FALSE(s.capped);
  }
}

TEST(Grade, TimedCaseWithoutNaiveIsNotRun) {
  const Score s = graded([](CellResult& c) {
    for (TimingSample& t : case_of(c, "timed_a").samples) t.naive.reset();
  });
  EXPECT_FALSE(dimension(s, "performance").points);
  EXPECT_FALSE(s.total);
}

TEST(Grade, ImpossibleTimesAreIgnored) {
  const Score s = graded([](CellResult& c) {
    case_of(c, "timed_a").samples[5].submission = 0;
    case_of(c, "timed_a").samples[6].submission = -1;
    case_of(c, "timed_a").samples[7].submission = kNaN;
  });
  EXPECT_NEAR(*s.total, 100, 0.2);
}

TEST(Grade, NaiveAsFastAsParLeavesAStep) {
  const auto with_equal = [](double seconds) {
    return graded([=](CellResult& c) {
      for (const char* n : {"timed_a", "timed_b"}) {
        for (TimingSample& t : case_of(c, n).samples) t = {1.0, 1.0, seconds};
      }
    });
  };
  EXPECT_EQ(*dimension(with_equal(1.0), "performance").points, 20);
  EXPECT_EQ(*dimension(with_equal(1.5), "performance").points, 0);
  EXPECT_THAT(with_equal(1).flags,
              ::testing::Contains(note(Note::Kind::par_not_faster, "timed_a")));
}

// --- scales and letters ------------------------------------------------------

TEST(Grade, ScaleInEitherDirection) {
  using grading::share_on_scale;
  EXPECT_DOUBLE_EQ(share_on_scale(10, 1, 100), 0.5);   // logarithmic, smaller is better
  EXPECT_DOUBLE_EQ(share_on_scale(10, 100, 1), 0.5);   // larger is better
  EXPECT_DOUBLE_EQ(share_on_scale(2.5, 0, 10), 0.75);  // linear
  EXPECT_DOUBLE_EQ(share_on_scale(-5, -10, 0), 0.5);
  EXPECT_DOUBLE_EQ(share_on_scale(0, 1, 100), 1);
  EXPECT_DOUBLE_EQ(share_on_scale(-3, 100, 1), 0);
  EXPECT_DOUBLE_EQ(share_on_scale(1e9, 1, 100), 0);
  EXPECT_DOUBLE_EQ(share_on_scale(HUGE_VAL, 1, 100), 0);
  EXPECT_DOUBLE_EQ(share_on_scale(HUGE_VAL, 100, 1), 1);
  EXPECT_DOUBLE_EQ(share_on_scale(kNaN, 1, 100), 0);
  EXPECT_DOUBLE_EQ(share_on_scale(8, 8, 8), 1);  // a bound to keep
  EXPECT_DOUBLE_EQ(share_on_scale(9, 8, 8), 0);
}

TEST(Grade, Letters) {
  const std::pair<double, const char*> kTable[] = {
      {100, "A"}, {90, "A"},  {89.96, "A"}, {89.94, "A-"}, {85, "A-"}, {80, "B+"},  {75, "B"},
      {70, "B-"}, {65, "C+"}, {60, "C"},    {59, "D"},     {50, "D"},  {49.9, "F"}, {0, "F"}};
  for (const auto& [points, expected] : kTable) EXPECT_EQ(letter(points), expected) << points;
}

}  // namespace
}  // namespace assay
