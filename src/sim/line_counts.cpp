#include "sim/line_counts.h"

#include <map>

namespace assay::sim {

std::vector<LineCounts> by_place(const std::vector<LineCounts>& lines) {
  std::map<std::vector<SourceLine>, LineCounts> sums;
  for (const LineCounts& line : lines) {
    LineCounts& sum = sums[line.places];
    sum.instructions += line.instructions;
    sum.active_lanes += line.active_lanes;
    sum.shared_replays += line.shared_replays;
  }
  std::vector<LineCounts> result;
  for (auto& [places, sum] : sums) {
    sum.places = places;
    result.push_back(std::move(sum));
  }
  return result;
}

}  // namespace assay::sim
