#include "check/public_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "assay/error.h"
#include "cells/preparation.h"
#include "grade/grade.h"
#include "records/lookup.h"
#include "spec/spec.h"
#include "util/clock.h"
#include "util/stop.h"

namespace assay::check {
namespace {

// Throws for faults of the harness, which would tell the submission nothing.
void require_no_fault(const CellResult& cell) {
  if (cell.build.verdict == Verdict::harness_error || cell.build.verdict == Verdict::skipped)
    throw Error(cell.build.log);
  for (const CaseResult& r : cell.cases) {
    if (r.verdict == Verdict::harness_error) throw Error(r.name + ": " + r.detail);
  }
}

bool is_optional(const CaseResult& r) {
  return r.group == CaseGroup::completeness || r.group == CaseGroup::resource;
}

// Why timing it would be meaningless; "" if it is not.
std::string why_not_timed(const PublicCheck& check) {
  if (check.cell.build.verdict != Verdict::ok) return "it does not compile";
  const auto required = [](const CaseResult& r) { return is_wrong(r) && !is_optional(r); };
  if (std::ranges::any_of(check.cell.cases, required)) return "required cases are wrong";
  return "";
}

}  // namespace

bool is_wrong(const CaseResult& r) {
  if (r.verdict == Verdict::ok) return false;
  if (is_failure(r)) return true;
  return !is_optional(r);
}

PublicCheck check_publicly(cells::CellRunner& runner, const ChallengeSpec& spec,
                           const Submission& submission, std::string_view gpu) {
  PublicCheck check;
  const double start = steady_seconds();
  const BuildResult built = runner.build(spec, submission);
  check.build_seconds = steady_seconds() - start;
  const bool cuda = submission.language == Language::cuda;
  const cases::CaseFilter filter{.quick = true};
  std::optional<cells::Preparation> baselines;
  if (!cuda && built.record.verdict == Verdict::ok)
    baselines.emplace(runner.baseline_builds(spec, Language::cpp));
  check.cell =
      cuda ? runner.simulate_built(spec, built, filter) : runner.check_built(spec, built, filter);
  check.cell.key = {
      .model = "", .challenge = spec.name, .attempt = "", .device = submission.device()};
  check_stop();
  require_no_fault(check.cell);
  check.case_seconds = steady_seconds() - start - check.build_seconds;
  if (baselines) std::ranges::move(baselines->finish(), std::back_inserter(check.cell.faults));
  check.not_timed = why_not_timed(check);
  if (!check.not_timed.empty()) return check;
  const double before = steady_seconds();
  if (!cuda) {
    runner.time_together(spec, std::span(&check.cell, 1));
    check_stop();
    require_no_fault(check.cell);
  }
  const Score score = grade(spec_for(check.cell.key.device, spec), check.cell, gpu);
  check.speeds = score.speeds;
  check.modelled_on = score.modelled_on;
  if (check.speeds.empty()) check.not_timed = "the timed case gave no speed";
  check.speed_seconds = steady_seconds() - before;
  return check;
}

Verdict worst(const PublicCheck& check) {
  Verdict worst = check.cell.build.verdict;
  for (const CaseResult& r : check.cell.cases) {
    if (is_wrong(r)) worst = std::min(worst, r.verdict);
  }
  return worst;
}

bool passed(const PublicCheck& check) { return worst(check) == Verdict::ok; }

}  // namespace assay::check
