#include "sim/memory/store_conflicts.h"

#include <cstring>

#include "sim/memory/lane_pattern.h"

namespace assay::sim {
std::optional<StoreConflict> find_store_conflict(const WarpAccess& a) {
  if (a.value == nullptr) return std::nullopt;
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
