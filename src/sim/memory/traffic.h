// What the memory accesses of a warp cost: sectors and bank conflicts, by the rules of
// sim/counters.h.
#pragma once

#include <cstdint>

#include "sim/counters.h"
#include "sim/memory/access.h"
#include "sim/memory/lane_pattern.h"

namespace assay::sim {

inline constexpr std::uint64_t kSectorBytes = 32;
inline constexpr unsigned kBanks = 32, kBankBytes = 4;

// Sectors that the lanes touch together. REQUIRES: aligned.
std::uint32_t sectors(const WarpAccess&, const LanePattern&);

struct BankPasses {
  std::uint32_t passes = 0, replays = 0;
  bool operator==(const BankPasses&) const = default;
};
BankPasses bank_passes(const WarpAccess&, const LanePattern&);
// Of all lanes at one address: as many lanes go together as have 32 words.
constexpr std::uint32_t passes_of_one_address(std::uint32_t bytes) {
  return bytes <= kBankBytes ? 1 : bytes / kBankBytes;
}

void count_global(Counters&, const WarpAccess&, const LanePattern&, bool constant);
void count_shared(Counters&, const WarpAccess&, const LanePattern&, BankPasses);
void count_local(Counters&, const WarpAccess&);

}  // namespace assay::sim
