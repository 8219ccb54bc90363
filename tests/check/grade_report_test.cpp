#include "check/grade_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "check_fixture.h"
#include "spec/json_schema.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay::check {
namespace {

using nlohmann::json;
using testing::case_spec;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::wrong;

class GradeReportTest : public ::testing::Test {
 protected:
  GradeReportTest() {
    fixture_.spec_.title = "Copying";
    fixture_.spec_.cases[1].weight = 3;
    fixture_.spec_.correctness_shares = {{CaseGroup::core, 1}};
    fixture_.spec_.weights = {.correctness = 60,
                              .accuracy = 0,
                              .performance = 40,
                              .resources = 0,
                              .completeness = 0,
                              .tests = 0};
  }
  StagedGrade graded(const std::vector<Stage>& stages, bool stop) {
    cells::CellRunner runner = fixture_.runner({});
    const Submission answer = CheckFixture::answer();
    RunnerStages steps(runner, fixture_.spec_, answer, {}, 1);
    return grade_in_stages(steps, fixture_.spec_, stages, stop, kDefaultGpu,
                           [](Stage) { return nullptr; });
  }
  GradeFacts facts() const { return {fixture_.spec_, "my/answer", "as asked", "1.2.3", "abc", {}}; }
  json report(const StagedGrade& grade) const {
    json document = json::parse(grade_json(grade, facts()));
    validate_json(document, read_file(testing::source_dir() + "/challenges/grade.schema.json"),
                  "grade");
    return document;
  }

  const std::vector<Stage> all_{kStages.begin(), kStages.end()};
  CheckFixture fixture_{testing::spec_with(
      {case_spec("plain"), case_spec("heavy"), case_spec("speed", CaseGroup::timed)})};
};

TEST_F(GradeReportTest, AWholeGradeHasItsParts) {
  const StagedGrade grade = graded(all_, false);
  const json j = report(grade);
  EXPECT_EQ(j.at("verdict"), "OK");
  EXPECT_EQ(j.at("total"), grade.score.total.value());
  EXPECT_EQ(j.at("passed").at("core"),
            json({{"passed", 2}, {"run", 2}, {"asked", 2}, {"of", 2}, {"share", 1.0}}));
  EXPECT_EQ(j.at("passed").at("trap").at("share"), nullptr);
  EXPECT_EQ(j.at("dimensions").at("correctness").at("points"), 60);
  EXPECT_NEAR(j.at("log_speed_over_par"), std::log(0.5), 1e-6);
  EXPECT_NEAR(j.at("log_speed_over_naive"), std::log(2), 1e-6);
  EXPECT_EQ(j.at("failed_stage"), nullptr);
  EXPECT_EQ(j.at("seed"), "7");
  const std::string text = grade_text(grade, facts());
  EXPECT_THAT(text, HasSubstr("my/answer (as asked)"));
  EXPECT_THAT(text, HasSubstr("an answer to Copying (cpu)"));
  EXPECT_THAT(text, HasSubstr("timings (medians)"));
}

TEST_F(GradeReportTest, AnUnfinishedOneSaysWhatIsThere) {
  fixture_.fails("heavy", wrong());
  const StagedGrade grade = graded(all_, true);
  const json j = report(grade);
  EXPECT_EQ(j.at("total"), nullptr);
  EXPECT_EQ(j.at("failed_stage"), "core");
  EXPECT_EQ(j.at("passed").at("core"),
            json({{"passed", 1}, {"run", 2}, {"asked", 2}, {"of", 2}, {"share", 0.25}}));
  EXPECT_EQ(j.at("failed_cases")[0].at("name"), "heavy");
  EXPECT_EQ(j.at("dimensions").at("performance").at("points"), nullptr);
  EXPECT_EQ(j.at("log_speed_over_par"), nullptr);
  const std::string text = grade_text(grade, facts());
  EXPECT_THAT(text, HasSubstr("heavy (core): WA"));
  EXPECT_THAT(text, Not(HasSubstr("assay rerun"))) << "it knows no model";
}

TEST_F(GradeReportTest, WhatDoesNotCompileIsZero) {
  fixture_.world_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::build_error;
    result.record.log = "submission.cpp:1: error: \x1b no";
    return result;
  };
  const json j = report(graded(all_, true));
  EXPECT_EQ(j.at("compiled"), false);
  EXPECT_EQ(j.at("total"), 0);
  EXPECT_EQ(j.at("failed_stage"), "build");
  EXPECT_THAT(j.at("build_log").get<std::string>(), HasSubstr("error: \\x1b no"));
}

}  // namespace
}  // namespace assay::check
