#include "report/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "boards.h"
#include "golden.h"
#include "report/figures.h"

namespace assay {
namespace {

using testing::graded_entry;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::two_specs;

std::string explained(const CellResult& cell) {
  const ChallengeSpec spec = testing::sample_spec();
  return explain(graded_entry(spec, cell), spec);
}

TEST(Explain, FailedCases) {
  testing::expect_golden("explain_flawed.txt",
                         explained(testing::flawed_cell(testing::sample_spec())));
}

TEST(Explain, BuildFailure) {
  testing::expect_golden("explain_unbuilt.txt",
                         explained(testing::unbuilt_cell(testing::sample_spec())));
}

TEST(Explain, TimingNotRun) {
  testing::expect_golden("explain_untimed.txt",
                         explained(testing::untimed_cell(testing::sample_spec())));
}

TEST(Explain, FullMarks) {
  const std::string text = explained(testing::sample_cell(testing::sample_spec()));
  EXPECT_THAT(text, HasSubstr("OK (correct)"));
  EXPECT_THAT(text, Not(HasSubstr("failed cases")));
}

TEST(Explain, TheClocksOfARealGpuAreTold) {
  CellResult cell = testing::sample_cell(testing::sample_spec());
  EXPECT_THAT(explained(cell), Not(HasSubstr("clocks of the GPU")));
  testing::case_of(cell, "timed_a").metrics = {
      {kGpuClockLow, 1755}, {kGpuClockHigh, 1980}, {kThrottledShare, 0}};
  testing::case_of(cell, "timed_b").metrics = {{kGpuClockLow, 1800},
                                               {kGpuClockHigh, 1800},
                                               {kGpuTemperatureLow, 40},
                                               {kThrottledShare, 0.25}};
  EXPECT_THAT(
      explained(cell),
      HasSubstr("\nclocks of the GPU: 1755 to 1980 MHz, 40 degrees C, held down in 25 % of the "
                "repetitions at most\n"));
}

TEST(Explain, LoadErrorIsToldOnce) {
  CellResult cell = testing::sample_cell(testing::sample_spec());
  cell.cases.resize(6);
  for (CaseResult& r : cell.cases) {
    r.verdict = Verdict::load_error;
    r.detail = "undefined symbol: ln_backward";
  }
  const std::string text = explained(cell);
  EXPECT_THAT(text, HasSubstr("and 5 more that do not load"));
  EXPECT_THAT(text, HasSubstr("undefined symbol: ln_backward"));
}

TEST(Explain, HostileTextIsMadePrintable) {
  CellResult cell = testing::flawed_cell(testing::sample_spec());
  cell.key.model = "evil\x1b[31m";
  testing::case_of(cell, "core_b").detail = "\x1b]0;title\x07";
  cell.build.log = "\x1b[2J";
  EXPECT_THAT(explained(cell), Not(HasSubstr("\x1b")));
}

TEST(Explain, CodeIsShownAndNotScored) {
  CellResult cell = testing::sample_cell(testing::sample_spec());
  EXPECT_THAT(explained(cell), HasSubstr("code, not scored:\n  size       not known: "));
  cell.code = CodeFacts{.files = 1, .code_lines = 30, .comment_lines = 4, .functions = 3};
  EXPECT_THAT(explained(cell),
              HasSubstr("  size       30 lines of code, 4 of comments, 0 blank, in 1 file; 0 "
                        "duplicated\n"
                        "  functions  3\n"
                        "  warnings   not known: it did not compile\n"));
  cell.code->longest = CodePlace{"A::f", "a\x1b.cpp", 7, 20};
  cell.code->deepest = CodePlace{"g", "b.h", 2, 1};
  cell.code->most_complex = CodePlace{"A::f", "b.h", 9, 8};
  cell.code->warnings = CompilerWarnings{3, {"b.h:3:1: warning: unused", "\x1b[2J"}, true};
  const std::string text = explained(cell);
  EXPECT_THAT(text, HasSubstr("  deepest    1 level: g (b.h:2)\n"
                              "  complexity up to 8: A::f (b.h:9)\n"
                              "  warnings   at least 3 under -Wall -Wextra\n"
                              "             b.h:3:1: warning: unused\n"));
  EXPECT_THAT(text, HasSubstr("             and 1 more\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  // An attempt without an answer has no code.
  cell.build.verdict = Verdict::no_answer;
  EXPECT_THAT(explained(cell), Not(HasSubstr("code, not scored")));
}

TEST(Explain, WhatWasTriedAgainIsSaid) {
  CellResult cell = testing::sample_cell(testing::sample_spec());
  EXPECT_THAT(explained(cell), Not(HasSubstr("tried again")));
  cell.faults = {"cannot fork: Resource temporarily unavailable", "\x1b[2J"};
  const std::string text = explained(cell);
  EXPECT_THAT(text, HasSubstr("tried again after faults of the harness:\n"
                              "  cannot fork: Resource temporarily unavailable\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Explain, WhatIsStaleIsSaidWithItsReasons) {
  const ChallengeSpec spec = testing::sample_spec();
  const CellResult cell = testing::sample_cell(spec);
  EXPECT_THAT(explained(cell), Not(HasSubstr("stale")));
  const std::string text = explain(graded_entry(spec, cell), spec, "stale, for a reason");
  EXPECT_THAT(text, HasSubstr("  note      stale, for a reason\n"));
}

TEST(SpeedAgainstPar, OnASimulatedGpuTheFloorStandsInWhereThereIsNoPar) {
  Score score;
  score.modelled_on = "H200";
  Dimension performance;
  performance.name = "performance";
  performance.points = 5;
  score.dimensions.push_back(performance);
  ShapeSpeed speed;
  speed.ratio_to_par = speed.ratio_to_floor = 0.25;
  speed.ratio_interval = {.low = 0.25, .high = 0.25};
  speed.ratio_to_naive = 4;
  score.speeds.push_back(speed);
  EXPECT_EQ(report::speed_against_par(score), "0.25x of the floor");
  score.speeds.front().ratio_to_floor = 0.2;
  EXPECT_EQ(report::speed_against_par(score), "0.25x modelled");
}

TEST(Replay, NamesTheCaseAndTheSeedOfTheRun) {
  CellResult cell = testing::sample_cell(testing::sample_spec());
  EXPECT_EQ(replay_command(cell, "trap_a"),
            "assay rerun textbook layer_norm_backward --device cpu --case trap_a --seed 42");
  cell.key.model = "it's; rm";
  cell.key.attempt = "2";
  EXPECT_EQ(replay_command(cell, "trap_a"),
            "assay rerun 'it'\\''s; rm' layer_norm_backward --attempt 2 --device cpu --case trap_a "
            "--seed 42");
  cell.key = {.model = "m", .challenge = "c", .attempt = "", .device = Device::cpu};
  cell.target = "x86-64-v3";
  EXPECT_EQ(replay_command(cell, "trap_a"),
            "assay rerun m c --device cpu --march x86-64-v3 --case trap_a --seed 42");
}

TEST(Summary, OneLinePerEntry) {
  const std::string text = summary(testing::full_entries(), two_specs());
  testing::expect_golden("summary.txt", text);
}

TEST(Summary, NamesTheSimulatedDevice) {
  BoardEntry entry = testing::full_entries().front();
  const std::string challenge = entry.cell.key.challenge;
  EXPECT_THAT(summary({entry}, two_specs()), Not(HasSubstr(challenge + " (sim)")));
  entry.cell.key.device = Device::sim;
  EXPECT_THAT(summary({entry}, two_specs()), HasSubstr(challenge + " (sim)"));
}

}  // namespace
}  // namespace assay
