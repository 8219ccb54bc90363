// The pattern of the addresses in a warp's access. Common patterns are recognised once, so that
// checks and counters need not examine each lane.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/memory/access.h"

namespace assay::sim {

struct LanePattern {
  std::uint32_t first = 0, lanes = 0;  // the lowest active lane, the number of active lanes
  std::uint64_t low = 0, high = 0;     // lowest and highest address
  bool aligned = false;                // every address is a multiple of the access size
  // Consecutive lanes, each with the previous lane's address plus the access size.
  bool contiguous = false;
  bool uniform = false;      // a single address (also with a single lane)
  bool distinct = false;     // no two lanes have the same address; for stores only
  bool ascending = false;    // each lane's address is above that of the one before
  std::uint64_t stride = 0;  // if full: address of lane i = low + i * stride; else 0

  std::uint64_t end(const WarpAccess& a) const { return high + a.bytes; }
};

// For accesses that need a closer look than find_pattern() takes.
LanePattern find_other_pattern(const WarpAccess&);

// Whether all lanes take part and each address is the previous one plus the same non-negative
// stride; sets the pattern if so.
inline bool find_strided(const WarpAccess& a, LanePattern& p) {
  if (a.mask != ~std::uint32_t{0}) return false;
  const std::uint64_t low = a.address[0], stride = a.address[1] - low;
  if (a.address[kLanes - 1] != low + (kLanes - 1) * stride) return false;
  std::uint64_t difference = 0;
  for (unsigned i = 0; i < kLanes; ++i) difference |= a.address[i] ^ (low + i * stride);
  if (difference != 0 || static_cast<std::int64_t>(stride) < 0) return false;
  p.lanes = kLanes;
  p.low = low;
  p.high = low + (kLanes - 1) * stride;
  p.aligned = ((low | stride) & (a.bytes - 1)) == 0;
  p.contiguous = stride == a.bytes;
  p.uniform = stride == 0;
  p.distinct = p.ascending = stride != 0;
  p.stride = stride;
  return true;
}

// REQUIRES: mask not 0.
inline LanePattern find_pattern(const WarpAccess& a) {
  LanePattern p;
  return find_strided(a, p) ? p : find_other_pattern(a);
}

constexpr std::uint32_t low_lanes(unsigned n) {
  return n >= kLanes ? ~std::uint32_t{0} : (std::uint32_t{1} << n) - 1;
}

// Addresses of all lanes; an inactive lane gets that of the first active one.
struct alignas(64) LaneAddresses {
  explicit LaneAddresses(const WarpAccess& a) {
    const std::uint64_t fill = a.address[std::countr_zero(a.mask)];
    for (unsigned i = 0; i < kLanes; ++i) {
      v[i] = ((a.mask >> i) & 1u) != 0 ? a.address[i] : fill;
    }
  }
  std::uint64_t v[kLanes];
};

// Calls f(lane) for each active lane, lowest first.
template <class F>
inline void for_lanes(std::uint32_t mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<std::uint32_t>(std::countr_zero(mask)));
}

constexpr std::uint32_t last_lane(std::uint32_t mask) {
  return 31u - static_cast<std::uint32_t>(std::countl_zero(mask));
}

// The lanes of `mask` with this address.
inline std::uint32_t lanes_at(const WarpAccess& a, std::uint32_t mask, std::uint64_t address) {
  std::uint32_t same = 0;
  for (unsigned i = 0; i < kLanes; ++i) same |= (a.address[i] == address ? 1u : 0u) << i;
  return same & mask;
}

// Calls f(lanes, address) for each address, in order of its lowest lane.
template <class F>
inline void for_addresses(const WarpAccess& a, F&& f) {
  for (std::uint32_t mask = a.mask; mask != 0;) {
    const std::uint64_t address = a.address[std::countr_zero(mask)];
    const std::uint32_t same = lanes_at(a, mask, address);
    mask &= ~same;
    f(same, address);
  }
}

// Calls f(first lane, last lane, address) for each run of active lanes with the same address.
// Inactive lanes in between do not end a run.
template <class F>
inline void for_runs(const WarpAccess& a, F&& f) {
  std::uint32_t mask = a.mask;
  while (mask != 0) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
    const std::uint64_t address = a.address[first];
    std::uint32_t last = first;
    mask &= mask - 1;
    while (mask != 0 && a.address[std::countr_zero(mask)] == address) {
      last = static_cast<std::uint32_t>(std::countr_zero(mask));
      mask &= mask - 1;
    }
    f(first, last, address);
  }
}

}  // namespace assay::sim
