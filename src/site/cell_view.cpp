#include "site/cell_view.h"

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"
#include "records/lookup.h"

namespace assay::site {

std::vector<Learned> learned(const CellResult& cell) {
  constexpr std::string_view kPrefix = "closure_";
  std::vector<Learned> all;
  for (const CaseResult& r : cell.cases) {
    if (r.group != CaseGroup::resource) continue;
    for (const Metric& m : r.metrics) {
      if (m.name.starts_with(kPrefix) && std::isfinite(m.value))
        all.push_back({r.name, m.name.substr(kPrefix.size()), m.value});
    }
  }
  return all;
}

std::optional<double> asked_closure(const ChallengeSpec& spec, const std::string& kind) {
  const auto rule = std::ranges::find(spec.resources, "closure_" + kind, &ResourceRule::metric);
  return rule == spec.resources.end() ? std::nullopt : std::optional(rule->full);
}

std::vector<RelativeError> relative_errors(const CellResult& cell) {
  std::vector<RelativeError> all;
  for (const CaseResult& r : cell.cases) {
    if (!r.error || !r.bound || !was_run(r.verdict) || !(*r.bound > 0)) continue;
    const double ratio = *r.error / *r.bound;
    if (!std::isnan(ratio)) all.push_back({r.name, r.group, ratio});
  }
  return all;
}

CellFacts facts_of(const CellView& view) {
  CellFacts facts;
  facts.with_sources = !view.sources.empty();
  if (!view.evidence) {
    for (const FailedCase& f : view.row->failed.value_or(std::vector<FailedCase>())) {
      if (was_run(f.verdict)) facts.failed.push_back(f.name);
    }
    return facts;
  }
  facts.with_evidence = true;
  facts.learned = learned(*view.evidence);
  for (const CaseResult& r : view.evidence->cases) {
    if (was_run(r.verdict)) ++facts.cases;
    if (is_failure(r)) facts.failed.push_back(r.name);
  }
  std::vector<double> ratios;
  for (const RelativeError& e : relative_errors(*view.evidence)) ratios.push_back(e.ratio);
  if (ratios.empty()) return facts;
  facts.median_error = median(ratios);
  facts.worst_error = *std::ranges::max_element(ratios);
  return facts;
}

}  // namespace assay::site
