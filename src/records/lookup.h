// What is found by name among results.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "assay/results.h"

namespace assay {

// Null when there is none of that name.
const CaseResult* find_case(const CellResult&, std::string_view name);
const double* find_metric(std::span<const Metric>, std::string_view name);

// Whether the case failed by the submission's fault; not where what is optional is not supported.
bool is_failure(const CaseResult&);

// Whether a case that is there for speed or memory showed that the answer is wrong at these sizes:
// wrong outputs, a crash, a finding, a breach. Being too slow or too large is none of these.
bool is_wrong_at_size(const CaseResult&);

// All that did not pass, what is optional and not supported among them; not what the harness failed
// to run. By the verdict's code, then in the order of the cell.
std::vector<FailedCase> failed_cases(const CellResult&);

// Whether kernels ran on the simulated GPU, to the end of the case.
bool ran_kernels(const CaseResult&);

// Whether the score is that of a quick run.
bool is_quick(const Score&);

}  // namespace assay
