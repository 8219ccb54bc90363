// Runs all blocks of a launch: in order on one host thread, or several at once if their order does
// not matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/execution/block_run.h"

namespace assay::sim {

// What one instruction did: as in Counters.
struct InstructionCounts {
  std::uint64_t instructions = 0, active_lanes = 0;
};

struct GridResult {
  std::optional<LaunchFailure> failure;  // of the first block in order that failed
  std::uint64_t failed_rank = 0;         // its place in the order
  Counters counters;                     // set if there was no failure
  std::vector<InstructionCounts> by_pc;  // likewise, if GridRun::count_by_pc; else empty
  std::string output;                    // of printf, by block
};

// Runs the blocks, by linear index, in the order of Permutation(blocks, shuffle_seed). Up to
// `resident` blocks that wait for one another take turns. `threads` may exceed 1 only if
// grid.parallel.
GridResult run_grid(GridRun& grid, unsigned threads, std::uint64_t resident);

}  // namespace assay::sim
