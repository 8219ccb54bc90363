// Two lanes of one store that write different values to one address.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/memory/access.h"

namespace assay::sim {

struct StoreConflict {
  std::uint32_t lane = 0, other_lane = 0;  // other_lane < lane
};

// Of a plain store; none if its values are unknown. The conflict at the address of the lowest lane.
std::optional<StoreConflict> find_store_conflict(const WarpAccess&);

}  // namespace assay::sim
