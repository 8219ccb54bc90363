#include "records/lookup.h"

#include <algorithm>

namespace assay {

const CaseResult* find_case(const CellResult& cell, std::string_view name) {
  const auto found = std::ranges::find(cell.cases, name, &CaseResult::name);
  return found == cell.cases.end() ? nullptr : &*found;
}

const double* find_metric(std::span<const Metric> metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? nullptr : &found->value;
}

bool is_failure(const CaseResult& r) {
  if (!was_run(r.verdict) || r.verdict == Verdict::ok || r.verdict == Verdict::harness_error)
    return false;
  const bool optional = r.group == CaseGroup::completeness || r.group == CaseGroup::resource;
  return !(r.verdict == Verdict::unsupported && optional);
}

bool is_wrong_at_size(const CaseResult& r) {
  if (r.group != CaseGroup::timed && r.group != CaseGroup::resource) return false;
  switch (r.verdict) {
    case Verdict::security_violation:
    case Verdict::protocol_violation:
    case Verdict::runtime_error:
    case Verdict::device_error:
    case Verdict::wrong_answer: return true;
    default: return false;
  }
}

std::vector<FailedCase> failed_cases(const CellResult& cell) {
  std::vector<FailedCase> failed;
  for (const CaseResult& r : cell.cases) {
    const bool said = r.verdict != Verdict::ok && r.verdict != Verdict::skipped &&
                      r.verdict != Verdict::harness_error;
    if (said) failed.push_back({r.name, r.verdict});
  }
  std::ranges::stable_sort(failed, {},
                           [](const FailedCase& f) { return std::string_view(code(f.verdict)); });
  return failed;
}

bool ran_kernels(const CaseResult& r) {
  const double* launches = find_metric(r.metrics, "sim_launches");
  return was_run(r.verdict) && launches != nullptr && *launches > 0;
}

bool is_quick(const Score& s) {
  return std::ranges::find(s.flags, Note::Kind::quick, &Note::kind) != s.flags.end();
}

}  // namespace assay
