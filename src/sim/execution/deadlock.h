// Reports the state in which no thread of a block can continue.
#pragma once

#include "sim/execution/block_run.h"

namespace assay::sim {

// Reports threads that wait at different barriers, and .sync operations whose lanes never arrive,
// and ends the launch.
[[noreturn]] void report_deadlock(BlockRun&);

}  // namespace assay::sim
