// Runs warps and blocks.
#pragma once

#include "sim/execution/block_run.h"

namespace assay::sim {

enum class Progress : std::uint8_t {
  finished,  // every thread exited
  blocked,   // made progress, and now waits at a barrier
  idle,      // could not continue
  polling,   // waits for another thread in a loop
  running,   // its time is up
};

Progress run_warp(WarpRun&);

// Runs until all warps are finished, or until all that can continue have polled for so long that
// another block should go first. `patience`: how many turns of all warps without any progress that
// takes.
Progress run_block(BlockRun&, std::uint32_t patience);

}  // namespace assay::sim
