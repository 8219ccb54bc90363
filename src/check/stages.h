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
  build,  // fails where it does not compile
  core,   // the core cases; fails where one is wrong
  all,    // every other untimed case, and core before them; fails where an edge or a trap is wrong
  findings,  // CUDA: fails where a check of the simulator found something in one of these, which it
             // brings with it
  tests,     // its own tests against right and wrong implementations; cannot fail
  time,      // every timed case, in CUDA simulated, and those that run alone; fails where one does
};
inline constexpr std::array kStages{Stage::build,    Stage::core,  Stage::all,
                                    Stage::findings, Stage::tests, Stage::time};

const char* to_string(Stage);
std::optional<Stage> stage_from(std::string_view);

// What a stage does to the cell. Throws Error for a fault of the harness.
class StageSteps {
 public:
  virtual ~StageSteps() = default;
  // A cell without cases.
  virtual CellResult build() = 0;
  virtual void core(CellResult&) = 0;
  // The other untimed cases. With `timed`, the timed ones of a simulated answer too, in one session
  // as a run has them.
  virtual void all(CellResult&, bool timed) = 0;
  virtual void own_tests(CellResult&) = 0;
  virtual void time(CellResult&) = 0;
};

struct StageRecord {
  Stage stage = Stage::build;
  enum class Status : std::uint8_t { passed, failed, not_run } status = Status::not_run;
  double seconds = 0;
  std::string why;  // it failed or was not run
};

const char* to_string(StageRecord::Status);

struct StagedGrade {
  CellResult cell;
  Score score;                      // with a total where all of it was measured
  std::vector<StageRecord> stages;  // all six, in order
};

// Runs the named stages in their order, and `build` in any case. With stop_at_failure none follows
// one that failed; else all run that can, which is the grade that `assay run` gives. `on_stage` is
// told of each that begins, and holds what it returns until that ends. `spec` is the whole
// challenge.
StagedGrade grade_in_stages(StageSteps&, const ChallengeSpec& spec, const std::vector<Stage>&,
                            bool stop_at_failure, std::string_view gpu,
                            const std::function<std::shared_ptr<void>(Stage)>& on_stage);

// The steps as a CellRunner takes them. All must outlive it.
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
  // Runs those of the cases that are wanted, and puts their results into the cell.
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
