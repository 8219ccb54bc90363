// Findings in words.
#pragma once

#include <string>

#include "sim/execution/block_run.h"
#include "sim/finding.h"
#include "sim/memory/checker.h"

namespace assay::sim {

std::string demangled(const std::string& name);

// Whether the finding is none, as only the program can tell: a race of volatile accesses of shared
// memory by two warps, which is a flag. (Of lanes of one warp it is code that relies on them
// running in step, which they do not since sm_70.)
bool is_excused(const GridRun&, const RawFinding&);

Finding describe(const GridRun&, const RawFinding&);
// Of a failure that the checker did not record.
Finding describe(const GridRun&, const LaunchFailure&);

}  // namespace assay::sim
