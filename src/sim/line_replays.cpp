#include "sim/line_replays.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace assay::sim {

std::vector<LineReplays> by_line(std::vector<LineReplays> lines) {
  std::map<std::string, std::uint64_t> sums;
  for (const LineReplays& l : lines) sums[l.where] += l.replays;
  lines.clear();
  for (const auto& [where, replays] : sums) lines.push_back({where, replays});
  std::ranges::sort(lines, [](const LineReplays& a, const LineReplays& b) {
    return std::tie(b.replays, a.where) < std::tie(a.replays, b.where);
  });
  return lines;
}

}  // namespace assay::sim
