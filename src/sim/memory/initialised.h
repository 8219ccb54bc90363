// Which lanes read bytes that nothing wrote, and what stores add to that.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/memory/access.h"
#include "sim/memory/bits.h"
#include "sim/memory/lane_pattern.h"

namespace assay::sim {

// `bits` begin at address `origin`. REQUIRES: aligned, so that no lane's bytes span two words.
inline std::uint32_t uninitialised_lanes(std::uint64_t* bits, std::uint64_t origin,
                                         const WarpAccess& a, const LanePattern& p) {
  if (p.contiguous && all_bits(bits, p.low - origin, p.end(a) - p.low)) return 0;
  const std::uint64_t bytes = low_bits(a.bytes);
  const auto lane_is_fresh = [&](std::uint32_t lane) {
    const std::uint64_t at = a.address[lane] - origin;
    const std::atomic_ref<std::uint64_t> word(bits[at / 64]);
    return (~(word.load(std::memory_order_relaxed) >> at % 64) & bytes) != 0;
  };
  if (p.uniform) return lane_is_fresh(p.first) ? a.mask : 0;
  std::uint32_t fresh = 0;
  for_lanes(a.mask, [&](std::uint32_t lane) { fresh |= (lane_is_fresh(lane) ? 1u : 0u) << lane; });
  return fresh;
}

inline void initialise_lanes(std::uint64_t* bits, std::uint64_t origin, const WarpAccess& a,
                             const LanePattern& p) {
  if (p.contiguous) return set_bits(bits, p.low - origin, p.end(a) - p.low);
  for_runs(a, [&](std::uint32_t, std::uint32_t, std::uint64_t address) {
    const std::uint64_t at = address - origin;
    set_bits_of_word(bits[at / 64], low_bits(a.bytes) << at % 64);
  });
}

}  // namespace assay::sim
