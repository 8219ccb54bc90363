// Describes findings in words.
#pragma once

#include <string>

#include "sim/execution/block_run.h"
#include "sim/finding.h"
#include "sim/memory/checker.h"

namespace assay::sim {

std::string demangled(const std::string& name);

// Whether the finding is excused, which depends on the program: two warps' volatile accesses of
// shared memory race, but act as a flag. (Between lanes of one warp, such code relies on lockstep
// execution, which does not exist since sm_70.)
bool is_excused(const GridRun&, const RawFinding&);

Finding describe(const GridRun&, const RawFinding&);
// Describes a failure that the checker did not record.
Finding describe(const GridRun&, const LaunchFailure&);

}  // namespace assay::sim
