// Finds two lanes of one store that write different values to one address.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/memory/access.h"

namespace assay::sim {

struct StoreConflict {
  std::uint32_t lane = 0, other_lane = 0;  // other_lane < lane
};

// For a plain store; absent if its values are unknown. Returns the conflict at the address of the
// lowest lane.
std::optional<StoreConflict> find_store_conflict(const WarpAccess&);

}  // namespace assay::sim
