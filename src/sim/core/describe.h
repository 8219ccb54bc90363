// Findings in words.
#pragma once

#include <string>

#include "sim/core/block_run.h"
#include "sim/finding.h"
#include "sim/memory/checker.h"

namespace assay::sim {

std::string demangled(const std::string& name);

Finding describe(const GridRun&, const RawFinding&);
// Of a failure that the checker did not record.
Finding describe(const GridRun&, const LaunchFailure&);

}  // namespace assay::sim
