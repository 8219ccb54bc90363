// All blocks of a launch: in order on one host thread, or several at once where their order does
// not matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/execution/block_run.h"

namespace assay::sim {

struct GridResult {
  std::optional<LaunchFailure> failure;  // of the first block in order that failed
  std::uint64_t failed_rank = 0;         // its place in the order
  Counters counters;                     // without failure
  std::string output;                    // of printf, by block
};

// The blocks, by their linear indices, in the order of Permutation(blocks, shuffle_seed). Up to
// `resident` blocks that wait for one another take turns. `threads` above 1 only if grid.parallel.
GridResult run_grid(GridRun& grid, unsigned threads, std::uint64_t resident);

}  // namespace assay::sim
