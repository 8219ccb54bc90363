#include "sim/memory/lane_shapes.h"

#include <bit>

#include "sim/memory/shared_entry.h"

namespace assay::sim {

// False if no shape has these addresses, as when they are misaligned or outside every memory.
bool LaneShapes::learn(LaneShape& s, const WarpAccess& a) {
  const LanePattern p = find_pattern(a);
  if (!p.aligned || p.high > kHighest) return false;
  s.pattern = p;
  s.below = a.address[0] - p.low;
  s.span = p.high - p.low;
  s.passes = bank_passes(a, p);
  s.addresses = 0;
  for_addresses(a, [&](std::uint32_t lanes, std::uint64_t address) {
    const std::uint32_t n = s.addresses++;
    s.offset[n] = static_cast<std::uint32_t>(address - p.low);
    s.lanes[n] =
        shared_entry::lanes(static_cast<std::uint32_t>(std::countr_zero(lanes)), last_lane(lanes));
  });
  return s.known = true;
}

}  // namespace assay::sim
