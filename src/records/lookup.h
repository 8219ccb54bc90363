// Finds parts of results by name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "assay/results.h"

namespace assay {

// Null if there is none of that name.
const CaseResult* find_case(const CellResult&, std::string_view name);
const double* find_metric(std::span<const Metric>, std::string_view name);

// Whether the case failed through the submission's fault. An optional feature that is unsupported
// is not a failure.
bool is_failure(const CaseResult&);

// Whether a case for speed or memory showed that the answer is wrong at these sizes: wrong outputs,
// a crash, a finding, a violation. Being too slow or too large does not count.
bool is_wrong_at_size(const CaseResult&);

// All cases that did not pass, including unsupported optional ones, but not those that the harness
// failed to run. Sorted by the verdict's code, then in the cell's order.
std::vector<FailedCase> failed_cases(const CellResult&);

// Whether kernels ran on the simulated GPU to the end of the case.
bool ran_kernels(const CaseResult&);

// Whether the score is that of a quick run.
bool is_quick(const Score&);

}  // namespace assay
