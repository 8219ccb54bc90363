// The cost of a warp's memory accesses: sectors and bank conflicts, by the rules of sim/counters.h.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/counters.h"
#include "sim/memory/access.h"
#include "sim/memory/lane_pattern.h"

namespace assay::sim {

inline constexpr std::uint64_t kSectorBytes = 32;
inline constexpr unsigned kBanks = 32, kBankBytes = 4;

// Distinct sectors that the lanes touch. REQUIRES: aligned.
std::uint32_t sectors(const WarpAccess&, const LanePattern&);

struct BankPasses {
  std::uint32_t passes = 0, replays = 0;
  bool operator==(const BankPasses&) const = default;
};
BankPasses bank_passes(const WarpAccess&, const LanePattern&);
// For all lanes at one address: lanes are handled together as long as they have 32 words.
constexpr std::uint32_t passes_of_one_address(std::uint32_t bytes) {
  return bytes <= kBankBytes ? 1 : bytes / kBankBytes;
}

// For a read-modify-write, whose lanes are serialised if they share a word.
BankPasses atomic_passes(const WarpAccess&);

// Passes of the atomic units, by slice of the L2 cache.
using SlicePasses = std::array<std::uint64_t, kL2Slices>;

// Loads and stores; atom and red; constants, whichever space they are read through.
void count_global(Counters&, const WarpAccess&, const LanePattern&);
void count_atomic(Counters&, SlicePasses&, const WarpAccess&, const LanePattern&);
void count_constant(Counters&, const WarpAccess&);
void count_shared(Counters&, const WarpAccess&, const LanePattern&, BankPasses);
// For the shared memory of another block of the cluster.
void count_shared_of_another(Counters&, const WarpAccess&, const LanePattern&);
void count_local(Counters&, const WarpAccess&);

// For local memory, if the lanes have the same offset.
constexpr std::uint32_t local_sectors(std::uint32_t mask, std::uint32_t bytes) {
  std::uint32_t groups = 0;  // of 8 lanes: their words make a sector
  for (; mask != 0; mask >>= 8) groups += (mask & 0xff) != 0 ? 1u : 0u;
  return groups * (bytes <= 4 ? 1 : bytes / 4);
}

}  // namespace assay::sim
