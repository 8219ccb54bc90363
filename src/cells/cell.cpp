#include "cells/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "cases/begin_result.h"
#include "cases/exclusive.h"
#include "cases/fault.h"
#include "cells/code_facts.h"
#include "cells/own_tests.h"
#include "records/floor.h"
#include "records/simulated_work.h"
#include "spec/spec.h"
#include "spec/tests_in_cuda.h"
#include "util/clock.h"
#include "util/sha256.h"
#include "util/text.h"
#include "util/transient_fault.h"

namespace assay::cells {
namespace fs = std::filesystem;
namespace {

// Runs `step`. A fault of the harness (any exception) ends only this cell, so that the others go
// on. After a TransientFault the step is retried once, and the fault is recorded in the cell.
template <class Step>
void guard(CellResult& cell, Step step) {
  std::string passing;
  try {
    return step();
  } catch (const TransientFault& fault) {
    passing = fault.what();
  } catch (const std::exception& fault) {
    return cases::end_with_fault(cell, fault);
  }
  try {
    step();
  } catch (const std::exception& fault) {
    cases::end_with_fault(cell, fault);
  }
  cell.faults.insert(cell.faults.begin(), std::move(passing));  // the step may have replaced it
}

// The verdict that makes timing pointless: the library does not load, or cases keep hitting time
// limits.
std::optional<Verdict> why_not_time(const CellResult& cell) {
  int timeouts = 0;
  for (const CaseResult& c : cell.cases) {
    if (c.verdict == Verdict::load_error) return c.verdict;
    const bool timeout = c.verdict == Verdict::time_limit || c.verdict == Verdict::idle_limit;
    if (timeout && ++timeouts >= cases::kMostTimeouts) return c.verdict;
  }
  return std::nullopt;
}

// Whether the cell is worth timing. If not because it is hopeless, records the cases as not
// attempted.
bool may_time(const Challenge& challenge, std::span<const CaseSpec* const> cases,
              CellResult& cell) {
  if (cell.build.verdict != Verdict::ok || cell.key.device == Device::sim) return false;
  const auto hopeless = why_not_time(cell);
  if (!hopeless) return true;
  for (const CaseSpec* c : cases) {
    cell.cases.push_back(
        cases::begin_result(challenge, *c, *hopeless, "not attempted: see the untimed cases"));
  }
  return false;
}

}  // namespace

cases::CaseFilter cases_for(const Example& example, bool every_case) {
  return {.quick = true,
          .named = example.targets,
          .and_correctness = every_case || example.kind != Example::Kind::wrong};
}

BuildResult CellRunner::build(const ChallengeSpec& spec, const Submission& submission) {
  BuildResult result;
  if (!submission.no_answer.empty()) {
    result.record.verdict = Verdict::no_answer;
    result.record.log = printable(submission.no_answer, 1);
  } else if (!submission.rejected.empty()) {
    result.record.verdict = Verdict::build_error;
    result.record.log = submission.rejected;
  } else {
    result = world_.compile({.sources = submission.sources,
                             .headers = {challenge_file(spec, "abi.h")},
                             .time_limit_s = build_limit(spec, submission.language),
                             .language = submission.language,
                             .machine_code = submission.language == Language::cuda,
                             .warnings = true});
  }
  result.record.source_hash = source_hash(submission);
  return result;
}

BuildResult CellRunner::build_example(const ChallengeSpec& spec, const Example& example) {
  BuildResult result = world_.compile(
      {.sources = {example.source},
       .headers = example_headers(spec, example.language),
       .time_limit_s = build_limit(spec, example.language),
       .language = example.language,
       .for_speed = example.kind != Example::Kind::wrong || needs_timing(spec, example)});
  result.record.source_hash = sha256_hex(example.source.contents);
  return result;
}

CellResult CellRunner::check(const ChallengeSpec& spec, const Submission& submission) {
  CellResult cell = new_cell(spec, {});
  cell.finished_at = utc_now();
  guard(cell, [&] {
    const BuildResult built = build(spec, submission);
    cell = check_built_on(submission.device(), spec, built, options_.filter);
    cell.code = code_facts(submission, built);
  });
  cell.key = key_of(submission);
  return cell;
}

CellResult CellRunner::new_cell(const ChallengeSpec& spec, const BuildResult& built) const {
  CellResult cell;
  cell.key.challenge = spec.name;
  cell.spec_hash = spec.hash;
  cell.isolation = sandbox::to_string(options_.tier);
  cell.target = world_.target;
  cell.seed = options_.seed;
  cell.build = built.record;
  return cell;
}

CellResult CellRunner::begin_cell(const ChallengeSpec& spec, const BuildResult& built) {
  if (built.record.verdict == Verdict::ok) {
    const std::lock_guard lock(mutex_);
    libraries_[spec.name + built.record.source_hash] = built.library;
  }
  CellResult cell = new_cell(spec, built);
  cell.finished_at = utc_now();
  return cell;
}

CellResult CellRunner::check_built(const ChallengeSpec& spec, const BuildResult& built,
                                   const cases::CaseFilter& filter) {
  CellResult cell = begin_cell(spec, built);
  if (built.record.verdict == Verdict::ok) {
    guard(cell, [&] {
      cases::TimeAccount account;
      cell.cases = cases::run_correctness(
          {world_, challenge_of(spec), worker_settings(world_, options_, spec, built.library),
           options_.seed, account},
          filter);
      account_.add(account);
    });
  }
  cell.finished_at = utc_now();
  return cell;
}

namespace {

bool bounds_resources(const ChallengeSpec& spec, const std::string& case_name) {
  return std::ranges::any_of(spec.resources, [&](const ResourceRule& rule) {
    return std::ranges::find(rule.case_names, case_name) != rule.case_names.end();
  });
}

// Adds the yardsticks by which timed and resource cases of a simulated cell are graded, besides the
// submission's own work.
void add_scale(const Challenge& challenge, const ChallengeSpec& spec, Baselines& baselines,
               CaseResult& result) {
  const CaseSpec& c = *find_case(spec, result.name);
  const bool timed = c.group == CaseGroup::timed;
  if (!timed && !bounds_resources(spec, c.name)) return;
  if (const auto work = baselines.work(spec, "naive.cu", c.name))
    add_metrics(result.metrics, *work, kNaivePrefix);
  if (!timed) return;
  if (const auto least = challenge.least_work(c, challenge.plan(c)))
    add_metrics(result.metrics, *least);
  if (const auto work = baselines.work(spec, "par.cu", c.name))
    add_metrics(result.metrics, *work, kParPrefix);
}

}  // namespace

CellResult CellRunner::check_on_gpu(Device device, const ChallengeSpec& whole,
                                    const BuildResult& built, const cases::CaseFilter& filter) {
  const bool simulated = device == Device::sim;
  CellResult cell = begin_cell(whole, built);
  cell.target = kNativeTarget;
  if (built.record.verdict == Verdict::ok) {
    const ChallengeSpec spec = spec_for(device, whole);
    guard(cell, [&] {
      cases::TimeAccount account;
      const cases::Bench bench{world_, challenge_of(spec),
                               simulated ? simulator_settings(world_, options_, spec, built.library)
                                         : gpu_settings(world_, options_, spec, built.library),
                               options_.seed, account};
      cell.cases =
          simulated ? cases::run_simulated(bench, filter) : cases::check_on_gpu(bench, filter);
      account_.add(account);
      // On a real GPU these are resource cases: all they need of naive is what its host code
      // requests, which the simulator counts as well.
      for (CaseResult& c : cell.cases) {
        if (c.verdict == Verdict::ok) add_scale(challenge_of(spec), spec, baselines_, c);
      }
    });
  }
  cell.finished_at = utc_now();
  return cell;
}

CellResult CellRunner::simulate_built(const ChallengeSpec& spec, const BuildResult& built,
                                      const cases::CaseFilter& filter) {
  return check_on_gpu(Device::sim, spec, built, filter);
}

CellResult CellRunner::check_built_on(Device device, const ChallengeSpec& spec,
                                      const BuildResult& built, const cases::CaseFilter& filter) {
  return device == Device::cpu ? check_built(spec, built, filter)
                               : check_on_gpu(device, spec, built, filter);
}

namespace {

// Adds the least work the problem needs, and the machine's roofline at the time of timing.
void add_floor(const Challenge& challenge, const ChallengeSpec& spec, const Roofline& roofline,
               CaseResult& result) {
  const CaseSpec& c = *find_case(spec, result.name);
  const auto least = challenge.least_work(c, challenge.plan(c));
  if (!least) return;
  add_metrics(result.metrics, *least);
  result.metrics.push_back({kRoofBytes, roofline.bytes_per_s});
  result.metrics.push_back({kRoofFlops, roofline.flops_per_s});
}

}  // namespace

fs::path CellRunner::library_of(const ChallengeSpec& spec, const CellResult& cell) const {
  const std::lock_guard lock(mutex_);
  return libraries_.at(spec.name + cell.build.source_hash);
}

void CellRunner::time_together(const ChallengeSpec& whole, std::span<CellResult> cells) {
  if (cells.empty()) return;
  time_together(spec_for(cells.front().key.device, whole), cells, options_.filter);
}

void CellRunner::run_exclusive(const ChallengeSpec& whole, CellResult& cell) {
  run_exclusive(spec_for(cell.key.device, whole), cell, options_.filter);
}

void CellRunner::time_examples(const ChallengeSpec& spec, std::span<CellResult> cells,
                               const cases::CaseFilter& filter) {
  time_together(spec, cells, filter);
  for (CellResult& cell : cells) run_exclusive(spec, cell, filter);
}

void CellRunner::time_together(const ChallengeSpec& spec, std::span<CellResult> cells,
                               const cases::CaseFilter& filter) {
  std::vector<const CaseSpec*> wanted;
  for (const CaseSpec& c : spec.cases) {
    const bool timed = c.group == CaseGroup::timed && !c.exclusive;
    if (timed && filter.takes(c)) wanted.push_back(&c);
  }
  std::vector<CellResult*> ready;
  for (CellResult& cell : cells) {
    if (may_time(challenge_of(spec), wanted, cell)) ready.push_back(&cell);
  }
  const bool on_gpu = !cells.empty() && cells.front().key.device == Device::cuda;
  const auto time = [&](std::span<CellResult* const> group) {
    const cases::BaselineLibraries naive_and_par =
        baselines_.libraries(spec, on_gpu ? Language::cuda : Language::cpp);
    std::vector<fs::path> libraries;
    for (const CellResult* cell : group) libraries.push_back(library_of(spec, *cell));
    std::vector<std::vector<CaseResult>> timed;
    for (const CaseSpec* c : wanted) {
      cases::TimeAccount account;
      timed.push_back(cases::run_timed({world_, challenge_of(spec),
                                        on_gpu ? gpu_settings(world_, options_, spec, {})
                                               : worker_settings(world_, options_, spec, {}),
                                        options_.seed, account},
                                       *c, naive_and_par, libraries, filter.quick));
      account_.add(account);
    }
    const Roofline roofline = world_.roofline();
    for (std::vector<CaseResult>& results : timed) {
      for (CaseResult& result : results) add_floor(challenge_of(spec), spec, roofline, result);
    }
    for (std::size_t i = 0; i < group.size(); ++i) {  // nothing here can fail halfway
      for (std::vector<CaseResult>& results : timed)
        group[i]->cases.push_back(std::move(results[i]));
      group[i]->finished_at = utc_now();
    }
  };
  if (ready.size() > 1) {
    try {
      return time(ready);
    } catch (const std::exception& fault) {
      // Retry each cell alone, so one bad cell cannot fail the rest.
      for (CellResult* cell : ready)
        cell->faults.push_back("while timed with others: " + cases::fault_text(fault));
    }
  }
  for (CellResult* cell : ready) {
    guard(*cell, [&] { time(std::span(&cell, 1)); });
  }
}

void CellRunner::run_exclusive(const ChallengeSpec& spec, CellResult& cell,
                               const cases::CaseFilter& filter) {
  std::vector<const CaseSpec*> wanted;
  for (const CaseSpec& c : spec.cases) {
    if (c.exclusive && filter.takes(c)) wanted.push_back(&c);
  }
  if (wanted.empty() || !may_time(challenge_of(spec), wanted, cell)) return;
  guard(cell, [&] {
    cases::TimeAccount account;
    std::vector<CaseResult> results = cases::run_exclusive(
        {world_, challenge_of(spec),
         worker_settings(world_, options_, spec, library_of(spec, cell)), options_.seed, account},
        wanted, cell.cases, [&] { return baselines_.library(spec, "par.cpp"); });
    account_.add(account);
    std::ranges::move(results, std::back_inserter(cell.cases));
  });
  cell.finished_at = utc_now();
}

bool CellRunner::tries_own_tests() const {
  return !options_.filter.quick && options_.filter.only.empty();
}

std::vector<SharedBuild> CellRunner::baseline_builds(const ChallengeSpec& spec, Language language) {
  const std::string ending = language == Language::cpp ? ".cpp" : ".cu";
  std::vector<SharedBuild> builds;
  for (const std::string& file : {"naive" + ending, "par" + ending})
    builds.push_back({file, [this, &spec, file] { baselines_.library(spec, file); }});
  return builds;
}

std::vector<SharedBuild> CellRunner::shared_builds(const ChallengeSpec& spec, bool own_tests) {
  const Language language = options_.gpu ? Language::cuda : Language::cpp;
  std::vector<SharedBuild> builds = baseline_builds(spec, language);
  if (!own_tests || !tries_own_tests()) return builds;
  if (language == Language::cuda && !has_tests_in_cuda(spec)) return builds;
  for (const TestSubject& subject : test_subjects(spec, language)) {
    builds.push_back({"tests with " + subject.name,
                      [this, &spec, subject] { build_subject(world_, spec, subject); }});
  }
  return builds;
}

void CellRunner::run_own_tests(const ChallengeSpec& spec, const Submission& submission,
                               CellResult& cell, std::size_t jobs) {
  const bool cuda = submission.language == Language::cuda;
  if (cuda && !has_tests_in_cuda(spec)) {
    cell.tests_note = {Note::Kind::tests_not_run,
                       "not run: the challenge has no wrong implementations in CUDA"};
    return;
  }
  if (submission.test_source.empty()) {
    cell.tests_note = {Note::Kind::no_tests,
                       fmt::format("ships no {}", tests_file(submission.language))};
    return;
  }
  if (cell.build.verdict == Verdict::skipped) {
    cell.tests_note = {Note::Kind::tests_not_run, cell.build.log};
    return;
  }
  if (!tries_own_tests()) {
    cell.tests_note = {Note::Kind::tests_not_run, "not run in a partial run"};
    return;
  }
  guard(cell, [&] {
    const processes::WorkerSettings settings = cuda ? simulator_settings(world_, options_, spec, {})
                                                    : worker_settings(world_, options_, spec, {});
    cell.mutants = cells::run_own_tests(world_, spec, settings, submission.language,
                                        submission.test_source, options_.seed, jobs);
  });
}

}  // namespace assay::cells
