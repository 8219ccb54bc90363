#include "sim/memory/store_conflicts.h"

#include <cstring>

#include "sim/memory/traffic.h"

namespace assay::sim {
namespace {

// Whether the addresses can be told to differ without comparing values.
bool all_differ(const WarpAccess& a, const LanePattern& p) {
  if (p.ascending) return true;
  if (p.uniform || p.high - p.low > 0xffffffffu) return false;
  const LaneAddresses all(a);
  std::uint32_t offset[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) offset[i] = static_cast<std::uint32_t>(all.v[i] - p.low);
  return distinct(offset) == p.lanes;
}

}  // namespace

std::optional<StoreConflict> find_store_conflict(const WarpAccess& a, const LanePattern& p) {
  if (a.kind != AccessKind::store || a.value == nullptr || p.lanes == 1) return std::nullopt;
  if (all_differ(a, p)) return std::nullopt;
  const auto* const values = static_cast<const std::byte*>(a.value);
  std::optional<StoreConflict> found;
  for_addresses(a, [&](std::uint32_t lanes, std::uint64_t) {
    if (found) return;
    const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
    for_lanes(lanes & (lanes - 1), [&](std::uint32_t lane) {
      const bool same = std::memcmp(values + first * std::size_t{a.bytes},
                                    values + lane * std::size_t{a.bytes}, a.bytes) == 0;
      if (!same && !found) found = StoreConflict{lane, first};
    });
  });
  return found;
}

}  // namespace assay::sim
