// The grade of one answer, stage by stage: build -> core -> all -> findings -> tests -> time.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/results.h"
#include "cells/cell.h"
#include "grade/gpu.h"
#include "submission/submission.h"

namespace assay::check {

enum class Stage : std::uint8_t {
  build,     // fails if it does not compile
  core,      // the core cases; fails if one is wrong
  all,       // core, then every other untimed case; fails if an edge or trap case is wrong
  findings,  // CUDA: implies core and all; fails on a simulator finding in a required case
  tests,     // its own tests against right and wrong implementations; cannot fail
  time,      // every timed case (simulated in CUDA) and those that run alone; fails if one does
};
inline constexpr std::array kStages{Stage::build,    Stage::core,  Stage::all,
                                    Stage::findings, Stage::tests, Stage::time};

const char* to_string(Stage);
std::optional<Stage> stage_from(std::string_view);

// The work of each stage on the cell. Throws Error for a fault of the harness.
class StageSteps {
 public:
  virtual ~StageSteps() = default;
  // Returns a cell without cases.
  virtual CellResult build() = 0;
  virtual void core(CellResult&) = 0;
  // The other untimed cases. With `timed`, also a simulated submission's timed cases, in one
  // session as in a run.
  virtual void all(CellResult&, bool timed) = 0;
  virtual void own_tests(CellResult&) = 0;
  virtual void time(CellResult&) = 0;
};

struct StageRecord {
  Stage stage = Stage::build;
  enum class Status : std::uint8_t { passed, failed, not_run } status = Status::not_run;
  double seconds = 0;
  std::string why;  // why it failed or was not run
};

const char* to_string(StageRecord::Status);

struct StagedGrade {
  CellResult cell;
  Score score;                      // has a total if everything was measured
  std::vector<StageRecord> stages;  // all six, in order
};

// Runs the named stages and those they need, in order; `build` always runs. With stop_at_failure,
// no stage follows a failed one; otherwise all that can run do, which gives the grade of `assay
// run`. `on_stage` is called as each stage begins, and its result is held until the stage ends.
// `spec` is the whole challenge.
StagedGrade grade_in_stages(StageSteps&, const ChallengeSpec& spec, const std::vector<Stage>&,
                            bool stop_at_failure, std::string_view gpu,
                            const std::function<std::shared_ptr<void>(Stage)>& on_stage);

// The steps, done by a CellRunner. All references must outlive it.
class RunnerStages final : public StageSteps {
 public:
  RunnerStages(cells::CellRunner& runner, const ChallengeSpec& spec, const Submission& answer,
               const cases::CaseFilter& filter, std::size_t jobs)
      : runner_(runner), spec_(spec), answer_(answer), filter_(filter), jobs_(jobs) {}

  CellResult build() override;
  void core(CellResult&) override;
  void all(CellResult&, bool timed) override;
  void own_tests(CellResult&) override;
  void time(CellResult&) override;

 private:
  void note_absent_tests(CellResult&);
  // Runs the wanted cases and puts their results into the cell.
  void check(CellResult&, const std::function<bool(const CaseSpec&)>& wanted);

  cells::CellRunner& runner_;
  const ChallengeSpec& spec_;
  const Submission& answer_;
  const cases::CaseFilter filter_;
  const std::size_t jobs_;
  BuildResult built_;
  bool timed_is_simulated_ = false;
};

}  // namespace assay::check
