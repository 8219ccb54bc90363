// Accesses of warps, in the notation of the tests.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/memory/access.h"
#include "sim/memory/checker.h"

namespace assay::sim {

inline constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};

// Owns the addresses and values that a WarpAccess points to.
struct Lanes {
  AccessKind kind = AccessKind::load;
  std::uint32_t bytes = 4, mask = kAllLanes, pc = 0, warp = 0;
  std::array<std::uint64_t, kLanes> address{};
  std::vector<std::byte> values;

  operator WarpAccess() const {
    return {kind, bytes, mask, address.data(), values.empty() ? nullptr : values.data(), pc, warp};
  }
  Lanes& at(std::uint32_t place) { return pc = place, *this; }
  Lanes& of_warp(std::uint32_t w) { return warp = w, *this; }
  Lanes& only(std::uint32_t lanes) { return mask = lanes, *this; }
  Lanes& with_values(const std::function<int(unsigned)>& f) {
    values.resize(std::size_t{kLanes} * bytes);
    for (unsigned i = 0; i < kLanes; ++i) values[i * bytes] = static_cast<std::byte>(f(i));
    return *this;
  }
};

inline Lanes lanes(AccessKind kind, std::uint32_t bytes,
                   const std::function<std::uint64_t(unsigned)>& address) {
  Lanes result;
  result.kind = kind;
  result.bytes = bytes;
  for (unsigned i = 0; i < kLanes; ++i) result.address[i] = address(i);
  return result;
}

// address + lane * stride
inline Lanes strided(AccessKind kind, std::uint32_t bytes, std::uint64_t address,
                     std::uint64_t stride) {
  return lanes(kind, bytes, [=](unsigned i) { return address + i * stride; });
}
inline Lanes row(AccessKind kind, std::uint64_t address, std::uint32_t bytes = 4) {
  return strided(kind, bytes, address, bytes);
}
inline Lanes one(AccessKind kind, std::uint64_t address, unsigned lane = 0,
                 std::uint32_t bytes = 4) {
  return strided(kind, bytes, address, 0).only(1u << lane);
}

// The way tiled kernels read: lanes in groups of `group`, with one step from lane to lane and
// another from group to group; with a step of 0 lanes share an address.
struct TileShape {
  std::uint32_t bytes = 4, group = 16;
  std::uint64_t in_group = 4, of_groups = 0;

  Lanes at(AccessKind kind, std::uint64_t origin) const {
    return lanes(kind, bytes,
                 [&](unsigned i) { return origin + i % group * in_group + i / group * of_groups; });
  }
  std::uint64_t size() const {
    return (group - 1) * in_group + (kLanes / group - 1) * of_groups + bytes;
  }
};

// below(n): a random number less than n. Steps are up to `steps` elements.
template <class Below>
TileShape random_tile(Below&& below, std::uint32_t smallest, std::uint32_t largest,
                      std::uint32_t steps) {
  TileShape s;
  s.bytes = smallest << below(static_cast<std::uint32_t>(std::countr_zero(largest / smallest)) + 1);
  s.group = 1u << below(6);
  const auto step = [&] {
    return std::uint64_t{s.bytes} * (below(2) == 0 ? below(2) : below(steps));
  };
  s.in_group = step();
  s.of_groups = step();
  return s;
}

}  // namespace assay::sim
