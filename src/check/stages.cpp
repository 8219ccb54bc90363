#include "check/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "cells/code_facts.h"
#include "grade/grade.h"
#include "records/lookup.h"
#include "spec/spec.h"
#include "spec/tests_in_cuda.h"
#include "util/clock.h"
#include "util/stop.h"

namespace assay::check {
namespace {

using Status = StageRecord::Status;

bool is_required(const CaseResult& r) { return in_correctness(r.group); }

// A required case that is wrong. Simulator findings belong to a later stage.
bool is_wrong_case(const CaseResult& r) {
  return is_required(r) && r.verdict != Verdict::ok && r.verdict != Verdict::device_error;
}

bool fails_core(const CaseResult& r) { return r.group == CaseGroup::core && is_wrong_case(r); }

bool fails_all(const CaseResult& r) { return r.group != CaseGroup::core && is_wrong_case(r); }

bool has_finding(const CaseResult& r) {
  return is_required(r) && r.verdict == Verdict::device_error;
}

template <class Fails>
std::string why_failed(const CellResult& cell, Fails fails) {
  const auto first = std::ranges::find_if(cell.cases, fails);
  if (first == cell.cases.end()) return "";
  const auto count = std::ranges::count_if(cell.cases, fails);
  return fmt::format("{} ({}){}", first->name, code(first->verdict),
                     count > 1 ? fmt::format(" and {} more", count - 1) : "");
}

class Staging {
 public:
  Staging(StageSteps& steps, const ChallengeSpec& spec, bool everything)
      : steps_(steps), spec_(spec), everything_(everything) {}

  void run(Stage stage, CellResult& cell, StageRecord& record) {
    switch (stage) {
      case Stage::build:
        cell = steps_.build();
        if (cell.build.verdict != Verdict::ok) record.why = description(cell.build.verdict);
        break;
      case Stage::core:
        steps_.core(cell);
        record.why = why_failed(cell, fails_core);
        break;
      case Stage::all:
        steps_.all(cell, everything_);
        record.why = why_failed(cell, fails_all);
        break;
      case Stage::findings: record.why = why_failed(cell, has_finding); break;
      case Stage::tests: steps_.own_tests(cell); break;
      case Stage::time:
        steps_.time(cell);
        record.why = why_failed(cell, [this](const CaseResult& r) { return fails_time(r); });
        break;
    }
    // A harness error is not a verdict on the submission.
    if (cell.build.verdict == Verdict::harness_error) record.why = cell.build.log;
    record.status = record.why.empty() ? Status::passed : Status::failed;
  }

 private:
  // Timed cases, and those that run alone.
  bool fails_time(const CaseResult& r) const {
    const CaseSpec* const of = find_case(spec_, r.name);
    return (r.group == CaseGroup::timed && r.verdict != Verdict::ok) ||
           (of != nullptr && of->exclusive && is_failure(r));
  }

  StageSteps& steps_;
  const ChallengeSpec& spec_;
  bool everything_;
};

// Whether cases that could have earned points were not run. A submission that does not build or
// load could not have earned any.
bool is_partial(const StagedGrade& grade) {
  const bool loads = grade.cell.build.verdict == Verdict::ok &&
                     std::ranges::none_of(grade.cell.cases, [](const CaseResult& r) {
                       return r.verdict == Verdict::load_error;
                     });
  return loads && std::ranges::any_of(grade.stages, [](const StageRecord& record) {
           return record.status == Status::not_run &&
                  (record.stage == Stage::core || record.stage == Stage::all ||
                   record.stage == Stage::time);
         });
}

// A partial grade must not pass as a quick run.
void withdraw_total(Score& score) {
  score.total.reset();
  score.interval = {};
  score.letter.clear();
  std::erase_if(score.flags, [](const Note& note) { return note.kind == Note::Kind::quick; });
}

// Every stage needs the build; `all` begins with the core cases, and findings are sought in all
// cases.
bool is_needed(Stage stage, const std::vector<Stage>& wanted) {
  const auto asked = [&](Stage s) { return std::ranges::find(wanted, s) != wanted.end(); };
  switch (stage) {
    case Stage::build: return true;
    case Stage::core: return asked(stage) || asked(Stage::all) || asked(Stage::findings);
    case Stage::all: return asked(stage) || asked(Stage::findings);
    default: return asked(stage);
  }
}

bool is_core(const CaseSpec& c) { return c.group == CaseGroup::core; }
bool is_timed(const CaseSpec& c) { return c.group == CaseGroup::timed; }

}  // namespace

const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::build: return "build";
    case Stage::core: return "core";
    case Stage::all: return "all";
    case Stage::findings: return "findings";
    case Stage::tests: return "tests";
    case Stage::time: return "time";
  }
  return "?";
}

std::optional<Stage> stage_from(std::string_view name) {
  for (const Stage stage : kStages) {
    if (name == to_string(stage)) return stage;
  }
  return std::nullopt;
}

const char* to_string(Status status) {
  switch (status) {
    case Status::passed: return "passed";
    case Status::failed: return "failed";
    case Status::not_run: return "not_run";
  }
  return "?";
}

StagedGrade grade_in_stages(StageSteps& steps, const ChallengeSpec& spec,
                            const std::vector<Stage>& wanted, bool stop_at_failure,
                            std::string_view gpu,
                            const std::function<std::shared_ptr<void>(Stage)>& on_stage) {
  StagedGrade result;
  Staging staging(steps, spec, !stop_at_failure);
  const char* failed = nullptr;  // the first stage that failed
  for (const Stage stage : kStages) {
    StageRecord& record = result.stages.emplace_back(StageRecord{stage, Status::not_run, 0, ""});
    const bool is_wanted = is_needed(stage, wanted);
    const bool can_run = stage == Stage::build || result.cell.build.verdict == Verdict::ok;
    if (!is_wanted) {
      record.why = "not asked for";
    } else if (failed != nullptr && (stop_at_failure || !can_run)) {
      record.why = fmt::format("{} failed", failed);
    } else if (stage == Stage::findings && result.cell.key.device != Device::sim) {
      record.why = "only the simulated GPU has findings";
    } else {
      const auto told = on_stage(stage);
      const double start = steady_seconds();
      staging.run(stage, result.cell, record);
      check_stop();  // a stop request also kills the worker: the result means nothing
      record.seconds = steady_seconds() - start;
      if (record.status == Status::failed && failed == nullptr) failed = to_string(stage);
    }
  }
  result.score = grade(spec_for(result.cell.key.device, spec), result.cell, gpu);
  if (is_partial(result)) withdraw_total(result.score);
  return result;
}

// If the submission has no tests, or there are no wrong implementations to run them on, records
// that at once.
void RunnerStages::note_absent_tests(CellResult& cell) {
  const bool nothing_to_meet = answer_.language == Language::cuda && !has_tests_in_cuda(spec_);
  if (answer_.test_source.empty() || nothing_to_meet)
    runner_.run_own_tests(spec_, answer_, cell, 1);
}

CellResult RunnerStages::build() {
  built_ = runner_.build(spec_, answer_);
  CellResult cell = runner_.begin_cell(spec_, built_);
  cell.key = key_of(answer_);
  cell.code = cells::code_facts(answer_, built_);
  note_absent_tests(cell);
  return cell;
}

void RunnerStages::check(CellResult& cell, const std::function<bool(const CaseSpec&)>& wanted) {
  const ChallengeSpec spec = spec_for(cell.key.device, spec_);
  cases::CaseFilter filter;
  for (const CaseSpec& c : spec.cases) {
    if (wanted(c) && filter_.takes(c)) filter.named.push_back(c.name);
  }
  if (filter.named.empty()) return;  // an empty list would select every case
  CellResult checked = runner_.check_built_on(cell.key.device, spec_, built_, filter);
  std::ranges::move(checked.cases, std::back_inserter(cell.cases));
  std::ranges::stable_sort(cell.cases, {}, [&](const CaseResult& r) {
    return std::ranges::find(spec.cases, r.name, &CaseSpec::name) - spec.cases.begin();
  });
  cell.finished_at = checked.finished_at;
  std::ranges::move(checked.faults, std::back_inserter(cell.faults));
  if (checked.build.verdict != Verdict::ok) cell.build = checked.build;
}

void RunnerStages::core(CellResult& cell) { check(cell, is_core); }

void RunnerStages::all(CellResult& cell, bool timed) {
  timed_is_simulated_ = timed && cell.key.device == Device::sim;
  check(cell,
        [&](const CaseSpec& c) { return !is_core(c) && (!is_timed(c) || timed_is_simulated_); });
}

void RunnerStages::own_tests(CellResult& cell) {
  runner_.run_own_tests(spec_, answer_, cell, jobs_);
}

void RunnerStages::time(CellResult& cell) {
  if (cell.key.device == Device::sim) {
    if (!timed_is_simulated_) check(cell, is_timed);
    return;
  }
  runner_.time_together(spec_, std::span(&cell, 1));
  runner_.run_exclusive(spec_, cell);
}

}  // namespace assay::check
