// What is found by name among results.
#pragma once

#include <span>
#include <string_view>

#include "assay/results.h"

namespace assay {

// Null when there is none of that name.
const CaseResult* find_case(const CellResult&, std::string_view name);
const double* find_metric(std::span<const Metric>, std::string_view name);

// Whether the case failed by the submission's fault; not where what is optional is not supported.
bool is_failure(const CaseResult&);

}  // namespace assay
