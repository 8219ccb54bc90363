// The cost of bank conflicts, by source line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::sim {

struct LineReplays {
  std::string where;          // "topk.cu:41"
  std::uint64_t replays = 0;  // Counters::shared_replays of the accesses in that line

  bool operator==(const LineReplays&) const = default;
};

// Each line once, with the sum of its replays: largest first, then by name.
std::vector<LineReplays> by_line(std::vector<LineReplays>);

}  // namespace assay::sim
