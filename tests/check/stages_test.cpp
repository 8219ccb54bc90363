#include "check/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check_fixture.h"
#include "records/lookup.h"

namespace assay::check {
namespace {

using testing::case_spec;
using testing::wrong;
using Status = StageRecord::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Stage> kAll(kStages.begin(), kStages.end());

CaseResult result_of(const std::string& name, CaseGroup group, Verdict verdict) {
  CaseResult r;
  r.name = name;
  r.group = group;
  r.verdict = verdict;
  return r;
}

// Records the steps that it is asked to run.
struct ScriptedSteps final : StageSteps {
  CellResult build() override {
    log.emplace_back("build");
    CellResult cell;
    cell.key.device = device;
    cell.build.verdict = build_verdict;
    return cell;
  }
  void core(CellResult& cell) override {
    log.emplace_back("core");
    cell.cases.push_back(result_of("plain", CaseGroup::core, core_verdict));
  }
  void all(CellResult& cell, bool timed_too) override {
    log.emplace_back(timed_too ? "all, timed" : "all");
    cell.cases.push_back(result_of("deep", CaseGroup::trap, trap));
    cell.cases.push_back(result_of("more", CaseGroup::completeness, Verdict::wrong_answer));
  }
  void own_tests(CellResult&) override { log.emplace_back("tests"); }
  void time(CellResult& cell) override {
    log.emplace_back("time");
    cell.cases.push_back(result_of("speed", CaseGroup::timed, timed));
    cell.cases.push_back(result_of("training", CaseGroup::resource, alone));
  }

  Device device = Device::cpu;
  Verdict build_verdict = Verdict::ok, core_verdict = Verdict::ok, trap = Verdict::ok,
          timed = Verdict::ok, alone = Verdict::ok;
  std::vector<std::string> log;
};

class StagesTest : public ::testing::Test {
 protected:
  StagedGrade graded(const std::vector<Stage>& stages, bool stop) {
    return grade_in_stages(steps_, spec_, stages, stop, kDefaultGpu, [&](Stage stage) {
      told_.emplace_back(to_string(stage));
      return nullptr;
    });
  }
  static const StageRecord& record(const StagedGrade& grade, Stage stage) {
    return *std::ranges::find(grade.stages, stage, &StageRecord::stage);
  }
  static std::vector<Status> statuses(const StagedGrade& grade) {
    std::vector<Status> all;
    for (const StageRecord& record : grade.stages) all.push_back(record.status);
    return all;
  }

  ScriptedSteps steps_;
  ChallengeSpec spec_ =
      testing::spec_with({case_spec("plain"), case_spec("speed", CaseGroup::timed)});
  std::vector<std::string> told_;
};

TEST_F(StagesTest, NamesGoBothWays) {
  for (const Stage stage : kStages) EXPECT_EQ(stage_from(to_string(stage)), stage);
  EXPECT_FALSE(stage_from("everything"));
}

TEST_F(StagesTest, RunInTheirOrderWhateverTheOrderAsked) {
  const StagedGrade grade = graded({Stage::time, Stage::tests, Stage::all}, true);
  EXPECT_THAT(steps_.log, ElementsAre("build", "core", "all", "tests", "time"));
  EXPECT_THAT(told_, ElementsAre("build", "core", "all", "tests", "time"));
  EXPECT_THAT(statuses(grade), ElementsAre(Status::passed, Status::passed, Status::passed,
                                           Status::not_run, Status::passed, Status::passed));
  EXPECT_EQ(record(grade, Stage::findings).why, "not asked for");
}

TEST_F(StagesTest, TheFirstThatFailsIsTheLast) {
  steps_.core_verdict = Verdict::wrong_answer;
  const StagedGrade grade = graded(kAll, true);
  EXPECT_THAT(steps_.log, ElementsAre("build", "core"));
  EXPECT_EQ(record(grade, Stage::core).status, Status::failed);
  EXPECT_EQ(record(grade, Stage::core).why, "plain (WA)");
  EXPECT_EQ(record(grade, Stage::time).why, "core failed");
  EXPECT_FALSE(grade.score.total);
}

TEST_F(StagesTest, CoreCasesAloneMayDo) {
  const StagedGrade grade = graded({Stage::core}, true);
  EXPECT_THAT(steps_.log, ElementsAre("build", "core"));
  EXPECT_EQ(record(grade, Stage::core).status, Status::passed);
  EXPECT_FALSE(grade.score.total);
}

TEST_F(StagesTest, ATrapFailsTheStageOfAllCases) {
  steps_.trap = Verdict::runtime_error;
  const StagedGrade grade = graded(kAll, true);
  EXPECT_THAT(steps_.log, ElementsAre("build", "core", "all"));
  EXPECT_EQ(record(grade, Stage::core).status, Status::passed);
  EXPECT_EQ(record(grade, Stage::all).why, "deep (RE)");
  EXPECT_EQ(record(grade, Stage::tests).why, "all failed");
}

TEST_F(StagesTest, AWholeGradeGoesOnAsARunDoes) {
  steps_.core_verdict = Verdict::wrong_answer;
  const StagedGrade grade = graded(kAll, false);
  EXPECT_THAT(steps_.log, ElementsAre("build", "core", "all, timed", "tests", "time"));
  EXPECT_EQ(record(grade, Stage::core).status, Status::failed);
  EXPECT_EQ(record(grade, Stage::all).status, Status::passed);
  EXPECT_EQ(record(grade, Stage::time).status, Status::passed);
}

TEST_F(StagesTest, NothingFollowsABuildThatFails) {
  steps_.build_verdict = Verdict::build_error;
  for (const bool stop : {false, true}) {
    steps_.log.clear();
    const StagedGrade grade = graded(kAll, stop);
    EXPECT_THAT(steps_.log, ElementsAre("build"));
    EXPECT_EQ(grade.stages[0].why, "does not compile");
    EXPECT_EQ(grade.score.total, 0);
    EXPECT_EQ(grade.score.verdict, Verdict::build_error);
  }
}

TEST_F(StagesTest, TheBuildIsRunUnasked) {
  graded({Stage::time}, true);
  EXPECT_THAT(steps_.log, ElementsAre("build", "time"));
}

TEST_F(StagesTest, FindingsAreAStageOfTheirOwnOnTheSimulator) {
  steps_.core_verdict = Verdict::device_error;
  EXPECT_EQ(record(graded(kAll, true), Stage::findings).why, "only the simulated GPU has findings");
  steps_.device = Device::sim;
  const StagedGrade grade = graded(kAll, true);
  EXPECT_EQ(record(grade, Stage::core).status, Status::passed);
  EXPECT_EQ(record(grade, Stage::findings).status, Status::failed);
  EXPECT_EQ(record(grade, Stage::findings).why, "plain (DE)");
  EXPECT_EQ(record(grade, Stage::tests).status, Status::not_run);
}

TEST_F(StagesTest, FindingsBringTheirCasesWithThem) {
  steps_.device = Device::sim;
  steps_.core_verdict = Verdict::device_error;
  EXPECT_EQ(record(graded({Stage::findings}, true), Stage::findings).status, Status::failed);
  EXPECT_THAT(steps_.log, ElementsAre("build", "core", "all"));
}

TEST_F(StagesTest, ATimedCaseCanFail) {
  steps_.timed = Verdict::time_limit;
  EXPECT_EQ(record(graded(kAll, true), Stage::time).why, "speed (TLE)");
}

TEST_F(StagesTest, ACaseThatRunsAloneCanFailTheStageOfTimes) {
  steps_.alone = Verdict::runtime_error;
  EXPECT_EQ(record(graded(kAll, true), Stage::time).why, "") << "it ran in another stage";
  spec_.cases.push_back(case_spec("training", CaseGroup::resource));
  spec_.cases.back().exclusive = true;
  EXPECT_EQ(record(graded(kAll, true), Stage::time).why, "training (RE)");
}

// --- with a CellRunner ---------------------------------------------------------------------------

class RunnerStagesTest : public ::testing::Test {
 protected:
  StagedGrade graded(const std::vector<Stage>& stages, bool stop,
                     Language language = Language::cpp) {
    cells::CellRunner runner = fixture_.runner({});
    const Submission answer = CheckFixture::answer(language);
    RunnerStages steps(runner, fixture_.spec_, answer, {}, 1);
    return grade_in_stages(steps, fixture_.spec_, stages, stop, kDefaultGpu,
                           [](Stage) { return nullptr; });
  }
  static std::vector<std::string> names(const CellResult& cell) {
    std::vector<std::string> all;
    for (const CaseResult& r : cell.cases) all.push_back(r.name);
    return all;
  }

  CheckFixture fixture_{testing::spec_with({case_spec("plain"), case_spec("deep", CaseGroup::trap),
                                            case_spec("speed", CaseGroup::timed)})};
};

TEST_F(RunnerStagesTest, AWholeGradeIsTheCellOfARun) {
  const StagedGrade grade = graded(kAll, false);
  cells::CellRunner runner = fixture_.runner({});
  CellResult cell = runner.check(fixture_.spec_, CheckFixture::answer());
  runner.run_own_tests(fixture_.spec_, CheckFixture::answer(), cell, 1);
  runner.time_together(fixture_.spec_, std::span(&cell, 1));
  runner.run_exclusive(fixture_.spec_, cell);
  ASSERT_EQ(names(grade.cell), names(cell));
  for (std::size_t i = 0; i < cell.cases.size(); ++i) {
    EXPECT_EQ(grade.cell.cases[i].seed, cell.cases[i].seed);
    EXPECT_EQ(grade.cell.cases[i].verdict, cell.cases[i].verdict);
    EXPECT_EQ(grade.cell.cases[i].error, cell.cases[i].error);
  }
  EXPECT_EQ(grade.cell.key, cell.key);
  EXPECT_EQ(grade.cell.tests_note, cell.tests_note);
  EXPECT_EQ(grade.cell.build.source_hash, cell.build.source_hash);
  EXPECT_EQ(grade.cell.seed, cell.seed);
}

TEST_F(RunnerStagesTest, ItCanBeTimedUnchecked) {
  const StagedGrade grade = graded({Stage::time}, true);
  EXPECT_THAT(names(grade.cell), ElementsAre("speed"));
  EXPECT_EQ(grade.cell.cases[0].verdict, Verdict::ok);
}

TEST_F(RunnerStagesTest, WithoutTestsOfItsOwnTheirStageIsNotMissed) {
  const StagedGrade grade = graded({Stage::all, Stage::time}, true);
  ASSERT_TRUE(grade.cell.tests_note);
  EXPECT_EQ(grade.cell.tests_note->kind, Note::Kind::no_tests);
}

TEST_F(RunnerStagesTest, TimedCasesOfTheSimulatorWaitForTheirStage) {
  fixture_.spec_.cases[2].on_simulator = true;
  const StagedGrade checked = graded({Stage::all}, true, Language::cuda);
  EXPECT_THAT(names(checked.cell), ElementsAre("plain", "deep"));
  EXPECT_EQ(checked.cell.key.device, Device::sim);
  EXPECT_THAT(names(graded(kAll, true, Language::cuda).cell),
              ElementsAre("plain", "deep", "speed"));
  EXPECT_EQ(fixture_.world_.count("run answer speed"), 1);
  EXPECT_THAT(names(graded(kAll, false, Language::cuda).cell),
              ElementsAre("plain", "deep", "speed"));
  EXPECT_EQ(fixture_.world_.count("run answer speed"), 2);
}

TEST_F(RunnerStagesTest, EachCaseIsRunOnce) {
  graded(kAll, true);
  EXPECT_EQ(fixture_.world_.count("run answer plain"), 1);
  EXPECT_EQ(fixture_.world_.count("run answer deep"), 1);
}

TEST_F(RunnerStagesTest, TheCoreFailsBeforeTheOthersAreRun) {
  fixture_.fails("plain", wrong());
  EXPECT_THAT(names(graded(kAll, true).cell), ElementsAre("plain"));
}

TEST_F(RunnerStagesTest, AWrongAnswerIsNotTimed) {
  fixture_.fails("deep", wrong());
  EXPECT_THAT(names(graded(kAll, true).cell), ElementsAre("plain", "deep"));
}

}  // namespace
}  // namespace assay::check
