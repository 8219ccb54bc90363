#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "grade/grade.h"
#include "records/record_fields.h"
#include "records/simulated_work.h"
#include "report/terminal.h"
#include "samples.h"
#include "spec/spec.h"

namespace assay {
namespace {

using testing::case_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::sample_cell;
using testing::sample_spec;

SimulatedWork moving(double bytes) {
  SimulatedWork work;
  work.counters.launches = 1;
  work.counters.blocks = 1000;
  work.counters.global_load_sectors = static_cast<std::uint64_t>(bytes / 32);
  return work;
}

// Both timed cases need 48 MB: 10 us on an H200, plus 3 us for the launch.
constexpr double kLeast = 48e6, kFloor = 13e-6;

CellResult simulated_cell(const ChallengeSpec& spec, double bytes, double naive_bytes) {
  CellResult cell = sample_cell(spec);
  cell.key.device = Device::sim;
  cell.mutants.clear();
  cell.tests_note = {Note::Kind::tests_not_run, "not run: C++ only"};
  for (CaseResult& r : cell.cases) {
    if (r.group != CaseGroup::timed) continue;
    r.samples.clear();
    add_metrics(r.metrics, moving(bytes));
    add_metrics(r.metrics, moving(naive_bytes), kNaivePrefix);
    r.metrics.push_back({kLeastBytes, kLeast});
    r.metrics.push_back({kLeastFlops, 0});
    r.metrics.push_back({kLeastLaunches, 1});
  }
  return cell;
}

ChallengeSpec simulated_spec() { return spec_for(Device::sim, sample_spec()); }

const Dimension& performance(const Score& s) {
  for (const Dimension& d : s.dimensions) {
    if (d.name == "performance") return d;
  }
  throw std::out_of_range("performance");
}

TEST(ModelledPerformance, RunsFromNaiveToTheFloor) {
  const ChallengeSpec spec = simulated_spec();
  const Score floor = grade(spec, simulated_cell(spec, kLeast, 10 * kLeast));
  EXPECT_NEAR(*performance(floor).points, spec.weights.performance, 1e-9);
  EXPECT_EQ(floor.modelled_on, "H200");
  const Score naive = grade(spec, simulated_cell(spec, 10 * kLeast, 10 * kLeast));
  EXPECT_NEAR(*performance(naive).points, 0, 1e-9);
}

TEST(ModelledPerformance, ThreePassesLoseWhatTheyCost) {
  const ChallengeSpec spec = simulated_spec();
  const Score s = grade(spec, simulated_cell(spec, 3 * kLeast, 10 * kLeast));
  const double share = std::log(103e-6 / 33e-6) / std::log(103e-6 / kFloor);
  EXPECT_NEAR(*performance(s).points, spec.weights.performance * share, 1e-6);
  EXPECT_NEAR(s.speeds.front().ratio_to_par, kFloor / 33e-6, 1e-9);
  EXPECT_NEAR(s.speeds.front().ratio_to_naive, 103.0 / 33, 1e-9);
  EXPECT_THAT(performance(s).why, HasSubstr("modelled on H200"));
}

TEST(ModelledPerformance, AParKernelIsAnAnchorBelowTheFloor) {
  const ChallengeSpec spec = simulated_spec();
  const auto share = [&](double bytes) {
    CellResult cell = simulated_cell(spec, bytes, 10 * kLeast);
    for (CaseResult& r : cell.cases) {
      if (r.group == CaseGroup::timed) add_metrics(r.metrics, moving(4 * kLeast), kParPrefix);
    }
    return *performance(grade(spec, cell)).points / spec.weights.performance;
  };
  EXPECT_NEAR(share(4 * kLeast), 0.85, 1e-9);
  EXPECT_NEAR(share(kLeast), 1, 1e-9);
  EXPECT_GT(share(2 * kLeast), 0.85);
  EXPECT_LT(share(2 * kLeast), 1);
}

TEST(ModelledPerformance, BesideAParTheSpeedIsStillToldByTheFloor) {
  const ChallengeSpec spec = simulated_spec();
  BoardEntry e;
  e.cell = simulated_cell(spec, 3 * kLeast, 10 * kLeast);
  for (CaseResult& r : e.cell.cases) {
    if (r.group == CaseGroup::timed) add_metrics(r.metrics, moving(2 * kLeast), kParPrefix);
  }
  e.score = grade(spec, e.cell);
  EXPECT_NEAR(e.score.speeds.front().ratio_to_par, 23.0 / 33, 1e-9);
  EXPECT_NEAR(e.score.speeds.front().ratio_to_floor, 13.0 / 33, 1e-9);
  EXPECT_THAT(performance(e.score).why, HasSubstr("0.394 times the speed of the floor"));
  const std::string text = explain(e, spec);
  EXPECT_THAT(text, HasSubstr("23.0 us"));
  EXPECT_THAT(text, HasSubstr("0.394"));
  EXPECT_THAT(text, Not(HasSubstr("0.697")));
}

TEST(ModelledPerformance, AnotherGpuIsAnotherGrade) {
  const ChallengeSpec spec = simulated_spec();
  const CellResult cell = simulated_cell(spec, 3 * kLeast, 10 * kLeast);
  const Score other = grade(spec, cell, "rtx4090");
  EXPECT_EQ(other.modelled_on, "RTX 4090");
  EXPECT_GT(std::abs(*performance(other).points - *performance(grade(spec, cell)).points), 0.01);
}

TEST(ModelledPerformance, WhatTheHostComputesEarnsNothing) {
  const ChallengeSpec spec = simulated_spec();
  const auto score = [&](double launches, double to_host, double of_naive) {
    CellResult cell = simulated_cell(spec, kLeast, 10 * kLeast);
    for (Metric& m : case_of(cell, "timed_a").metrics) {
      if (m.name == "sim_launches") m.value = launches;
      if (m.name == "sim_to_host_bytes") m.value = to_host;
      if (m.name == "naive_sim_to_host_bytes") m.value = of_naive;
    }
    return grade(spec, cell);
  };
  const auto points = [&](const Score& s) { return *performance(s).points; };
  const double all = spec.weights.performance;
  EXPECT_NEAR(points(score(1, 200e3, 0)), all, 1);
  EXPECT_NEAR(points(score(1, 300e3, 0)), 0.75 * all, 1e-9);
  EXPECT_NEAR(points(score(1, 300e3, 300e3)), all, 1);
  EXPECT_NEAR(points(score(0, 0, 0)), 0.75 * all, 1e-9);
  EXPECT_THAT(performance(score(1, 300e3, 0)).why,
              HasSubstr("timed_a (computes on the host: 0.3 MB"));
}

// Computing on the host needs no memory on the device.
TEST(ModelledPerformance, WhatTheHostComputesSavesNoMemory) {
  const ChallengeSpec spec = simulated_spec();
  const auto resources = [&](double launches, double to_host) {
    CellResult cell = simulated_cell(spec, kLeast, 10 * kLeast);
    SimulatedWork work = moving(1e6);
    work.counters.launches = static_cast<std::uint64_t>(launches);
    add_metrics(case_of(cell, "core_a").metrics, work);
    add_metrics(case_of(cell, "core_a").metrics, moving(1e6), kNaivePrefix);
    for (Metric& m : case_of(cell, "core_a").metrics) {
      if (m.name == "sim_to_host_bytes") m.value = to_host;
    }
    const Score s = grade(spec, cell);
    return *std::ranges::find(s.dimensions, "resources", &Dimension::name);
  };
  const auto share = [](const Dimension& d) { return *d.points / d.max; };
  EXPECT_NEAR(share(resources(1, 200e3)), 1, 1e-9);
  // The rule of core_a has a quarter of the weight.
  EXPECT_NEAR(share(resources(1, 300e3)), 0.75, 1e-9);
  EXPECT_NEAR(share(resources(0, 0)), 0.75, 1e-9);
  EXPECT_THAT(resources(0, 0).why, HasSubstr("core_a computed on the host"));
}

TEST(ModelledPerformance, WhatTheHostLearnedInEarlierPhasesCountsToo) {
  const ChallengeSpec spec = simulated_spec();
  CellResult cell = simulated_cell(spec, kLeast, 10 * kLeast);
  for (Metric& m : case_of(cell, "timed_a").metrics) {
    if (m.name == "sim_to_host_before") m.value = 300e3;
  }
  EXPECT_THAT(performance(grade(spec, cell)).why,
              HasSubstr("timed_a (computes on the host: 0.3 MB"));
}

TEST(ModelledPerformance, BelowTheFloorEarnsNothingAndSaysSo) {
  const ChallengeSpec spec = simulated_spec();
  CellResult cell = simulated_cell(spec, kLeast, 10 * kLeast);
  for (Metric& m : case_of(cell, "timed_a").metrics) {
    if (m.name == "sim_global_load_sectors") m.value -= 100;
  }
  const Score s = grade(spec, cell);
  EXPECT_NEAR(*performance(s).points, 0.75 * spec.weights.performance, 1e-9);
  EXPECT_THAT(performance(s).why, HasSubstr("timed_a (modelled below its floor)"));
  EXPECT_THAT(s.flags, ::testing::Contains(::testing::AllOf(
                           ::testing::Field(&Note::kind, Note::Kind::other),
                           ::testing::Field(&Note::text, HasSubstr("until that is explained")))));
}

TEST(ModelledPerformance, WithoutCountsThereIsNoFigure) {
  const ChallengeSpec spec = simulated_spec();
  CellResult cell = simulated_cell(spec, kLeast, 10 * kLeast);
  std::erase_if(case_of(cell, "timed_a").metrics,
                [](const Metric& m) { return m.name.starts_with("naive_"); });
  const Score s = grade(spec, cell);
  EXPECT_FALSE(performance(s).points);
  EXPECT_FALSE(s.total);
}

TEST(ModelledPerformance, TheTotalLeavesOutTestsAndStillReaches100) {
  const ChallengeSpec spec = simulated_spec();
  const Score s = grade(spec, simulated_cell(spec, kLeast, 10 * kLeast));
  ASSERT_TRUE(s.total);
  EXPECT_NEAR(*s.total, 100, 1e-9);
  for (const Dimension& d : s.dimensions) EXPECT_NE(d.name, "tests");
}

TEST(ModelledPerformance, SurvivesItsFile) {
  const ChallengeSpec spec = simulated_spec();
  const Score s = grade(spec, simulated_cell(spec, 2 * kLeast, 10 * kLeast));
  EXPECT_EQ(record_from<Score>(record_json(s), "").modelled_on, "H200");
}

TEST(ModelledPerformance, IsExplainedWithItsFormulaAndCounts) {
  const ChallengeSpec spec = simulated_spec();
  BoardEntry e;
  e.cell = simulated_cell(spec, 3 * kLeast, 10 * kLeast);
  e.score = grade(spec, e.cell);
  const std::string text = explain(e, spec);
  EXPECT_THAT(text, HasSubstr("modelled, never measured"));
  EXPECT_THAT(text, HasSubstr("144.00 (3.00x least)"));
  EXPECT_THAT(text, HasSubstr("33.0 us"));
}

}  // namespace
}  // namespace assay
