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

}  // namespace assay
