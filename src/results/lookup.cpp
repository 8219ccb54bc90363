#include "results/lookup.h"

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

}  // namespace assay
