// The path from a memory instruction to bytes: checks, counters, then the copy.
#pragma once

#include <cstdint>
#include <cstring>

#include "sim/address_map.h"
#include "sim/execution/block_run.h"
#include "sim/execution/warp.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

// Instr::e of loads, stores and atomics.
struct MemoryFlags {
  ptx::Space space = ptx::Space::generic;
  bool narrow_address = false;   // the address is a Lanes32
  bool atomic = false;           // of loads and stores: atomic_load, atomic_store
  bool returns = false;          // atomics: d is written
  bool releases = false;         // beyond the block: a fence comes first
  bool releases_block = false;   // likewise within the block, for shared memory
  bool is_volatile = false;      // for shared memory, where it makes no access atomic
  std::uint8_t extend_from = 0;  // loads: bits to extend with their sign, 0: none ...
  std::uint8_t extend_to = 0;    // ... to these bits

  std::uint32_t encode() const {
    return static_cast<std::uint32_t>(space) | (narrow_address ? 8u : 0u) | (atomic ? 16u : 0u) |
           (returns ? 32u : 0u) | (releases ? 64u : 0u) | (std::uint32_t{extend_from} << 8) |
           (std::uint32_t{extend_to} << 16) | (is_volatile ? 1u << 24 : 0u) |
           (releases_block ? 1u << 25 : 0u);
  }
  static MemoryFlags decode(std::uint32_t e) {
    return {static_cast<ptx::Space>(e & 7),
            (e & 8) != 0,
            (e & 16) != 0,
            (e & 32) != 0,
            (e & 64) != 0,
            (e & (1u << 25)) != 0,
            (e & (1u << 24)) != 0,
            static_cast<std::uint8_t>(e >> 8),
            static_cast<std::uint8_t>(e >> 16)};
  }
};

// base + offset in every lane.
inline void lane_addresses(Warp& w, std::uint32_t base, std::uint64_t offset, bool narrow,
                           Lanes64& out) {
  if (narrow) {
    const Lanes32& a = w.r32(base);
    const auto o = static_cast<std::uint32_t>(offset);
    for (unsigned l = 0; l < kLanes; ++l) out.v[l] = a.v[l] + o;
  } else {
    const Lanes64& a = w.r64(base);
    for (unsigned l = 0; l < kLanes; ++l) out.v[l] = a.v[l] + offset;
  }
}

// Whether the lanes' elements of kBytes are contiguous.
template <unsigned kBytes>
inline bool consecutive(const std::uint64_t* address) {
  std::uint64_t differ = 0;
  for (unsigned l = 0; l < kLanes; ++l) differ |= address[l] ^ (address[0] + l * kBytes);
  return differ == 0;
}

// Loads and stores of the lanes in `mask`, kBytes each (1, 2, 4, 8, 16 or 32), lane-major in
// `data`; `data` of other lanes is unchanged. Generic addresses may point anywhere.
template <unsigned kBytes>
void load_lanes(WarpRun&, ptx::Space, const std::uint64_t* address, std::uint32_t mask, AccessKind,
                std::byte* data);
template <unsigned kBytes>
void store_lanes(WarpRun&, ptx::Space, const std::uint64_t* address, std::uint32_t mask, AccessKind,
                 const std::byte* data);

// Whether all lanes have the same address. T: the element of a Lanes32 or a Lanes64.
template <class T>
inline bool uniform(const T* address) {
  if (address[0] != address[kLanes - 1]) return false;
  T differ = 0;
  for (unsigned l = 0; l < kLanes; ++l) differ |= address[l] ^ address[0];
  return differ == 0;
}

// Checks and counts a load of one address by all active lanes, and returns the location of its
// bytes. Does nothing and returns null for spaces other than global and shared, and for addresses
// in the window of a cluster: they need load_lanes().
const std::byte* load_uniform(WarpRun&, ptx::Space, const std::uint64_t* address,
                              std::uint32_t bytes, AccessKind);

// A volatile access of shared memory by the active lanes, which may be a flag.
void order_volatile(WarpRun&, const std::uint64_t* address, std::uint32_t bytes, AccessKind);

// Locates each lane's operand of a read-modify-write in host memory, after the checks.
void locate_atomic(WarpRun&, ptx::Space, const std::uint64_t* address, std::uint32_t mask,
                   AccessKind, std::uint32_t bytes, std::byte** host);

// A word of a lane's local memory.
inline std::byte* local_word(WarpRun& w, std::uint64_t offset, unsigned lane) {
  return w.local.data() + ((offset / 4) * kLanes + lane) * 4 + offset % 4;
}

// Calls f(space, addresses, mask) for the lanes of each space that generic addresses point to, with
// addresses in the form that load_lanes needs for that space.
template <class F>
void for_each_space(const std::uint64_t* address, std::uint32_t mask, F&& f) {
  std::uint32_t global = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    global |= static_cast<std::uint32_t>(kGlobalRange.contains(address[l])) << l;
  }
  if ((mask & ~global) == 0) return f(ptx::Space::global, address, mask);
  std::uint32_t rest = mask;
  constexpr struct {
    ptx::Space space;
    AddressRange range;
  } kOthers[] = {{ptx::Space::shared, kSharedRange},
                 {ptx::Space::local, kLocalRange},
                 {ptx::Space::param, kParamRange}};
  for (const auto& [space, range] : kOthers) {
    Lanes64 offset;
    std::uint32_t lanes = 0;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      offset.v[l] = address[l] - range.begin;
      lanes |= static_cast<std::uint32_t>(range.contains(address[l])) << l;
    }
    lanes &= rest;
    if (lanes == 0) continue;
    f(space, offset.v, lanes);
    rest &= ~lanes;
  }
  if (rest != 0) f(ptx::Space::global, address, rest);  // also addresses that point nowhere
}

}  // namespace assay::sim
