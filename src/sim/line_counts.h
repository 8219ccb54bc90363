// What a launch executed, by source line.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/source_line.h"

namespace assay::sim {

struct LineCounts {
  // The line, and for inlined code the calls, innermost first. Not empty.
  std::vector<SourceLine> places;
  // As in Counters: of the line's instructions.
  std::uint64_t instructions = 0, active_lanes = 0, shared_replays = 0;

  bool operator==(const LineCounts&) const = default;
};

// Each place once, with its sums, in the order of `places`.
std::vector<LineCounts> by_place(const std::vector<LineCounts>&);

}  // namespace assay::sim
