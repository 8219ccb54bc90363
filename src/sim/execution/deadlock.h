// What is said when no thread of a block can go on.
#pragma once

#include "sim/execution/block_run.h"

namespace assay::sim {

// Reports threads that wait at different barriers and .sync operations whose lanes never come, and
// ends the launch.
[[noreturn]] void report_deadlock(BlockRun&);

}  // namespace assay::sim
