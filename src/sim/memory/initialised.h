// Finds lanes that read unwritten bytes, and marks the bytes that stores write.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/memory/access.h"
#include "sim/memory/bits.h"
#include "sim/memory/lane_pattern.h"
#include "sim/memory/lane_shapes.h"

namespace assay::sim {

// Bit i: byte `at` + i, of `bytes` bytes, is not written. Uses plain reads, which the compiler
// turns into gathers: words are not torn, and bits are only ever set. REQUIRES: the bytes do not
// span two words.
inline std::uint64_t missing_bytes(const std::uint64_t* bits, std::uint64_t at,
                                   std::uint32_t bytes) {
  return ~(bits[at / 64] >> at % 64) & low_bits(bytes);
}

// `bits` begins at address `origin`. REQUIRES: aligned, so that no lane's bytes span two words.
inline std::uint32_t uninitialised_lanes(std::uint64_t* bits, std::uint64_t origin,
                                         const WarpAccess& a, const LanePattern& p) {
  if (p.contiguous && all_bits(bits, p.low - origin, p.end(a) - p.low)) return 0;
  const std::uint32_t bytes = a.bytes;
  const auto is_fresh = [=](std::uint64_t address) {
    return missing_bytes(bits, address - origin, bytes) != 0;
  };
  if (p.uniform) return is_fresh(p.low) ? a.mask : 0;
  const LaneAddresses all(a);
  std::uint64_t any = 0;
  for (unsigned i = 0; i < kLanes; ++i) any |= is_fresh(all.v[i]) ? 1u : 0u;
  if (any == 0) return 0;
  std::uint32_t fresh = 0;
  for_lanes(a.mask,
            [&](std::uint32_t lane) { fresh |= (is_fresh(a.address[lane]) ? 1u : 0u) << lane; });
  return fresh;
}

// Whether an access of this shape finds all its bytes written. `bits` begins at address 0 and is
// used by one thread.
inline bool all_initialised(const std::uint64_t* bits, const LaneShape& s, const LanePattern& p) {
  const std::uint32_t bytes = s.bytes;
  std::uint64_t missing = 0;
  for (std::uint32_t i = 0; i < s.addresses; ++i) {
    missing |= missing_bytes(bits, p.low + s.offset[i], bytes);
  }
  return missing == 0;
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
