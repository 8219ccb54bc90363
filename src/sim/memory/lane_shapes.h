// A kernel's accesses repeat their shape, that is, the positions of the lanes' addresses relative
// to one another. Tiled kernels read shared memory with few shapes at many origins, so what follows
// from the shape alone is computed once and remembered.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/memory/access.h"
#include "sim/memory/lane_pattern.h"
#include "sim/memory/traffic.h"

namespace assay::sim {

// The shape of an aligned access by all lanes.
struct LaneShape {
  alignas(64) std::uint64_t delta[kLanes];  // address of the lane - address of lane 0
  AccessKind kind{};
  std::uint32_t bytes = 0;  // 0: nothing remembered
  std::uint64_t phase = 0;  // address of lane 0 within its bank, or element
  bool known = false;       // whether the rest is set; if not, only delta to phase of a shape seen
                            // recently

  LanePattern pattern;      // low and high are only set by at()
  std::uint64_t below = 0;  // address of lane 0 - lowest address
  std::uint64_t span = 0;   // highest address - lowest address
  BankPasses passes;
  // Distinct addresses: offset from the lowest, and the lanes from first to last in the form of
  // SharedRaces' entries.
  std::uint32_t addresses = 0;
  std::uint32_t offset[kLanes];
  std::uint64_t lanes[kLanes];

  LanePattern at(std::uint64_t address_of_lane_0) const {
    LanePattern p = pattern;
    p.low = address_of_lane_0 - below;
    p.high = p.low + span;
    return p;
  }
};

class LaneShapes {
 public:
  // The access's shape if it was seen twice before, else null; valid until the next call. REQUIRES:
  // all lanes take part.
  const LaneShape* find(const WarpAccess& a) {
    const std::uint64_t origin = a.address[0], tag = tag_of(a);
    const std::size_t begin = (tag >> (64 - kSetBits)) * kWays;
    std::size_t place = begin;
    while (place < begin + kWays && tags_[place] != tag) ++place;
    if (place == begin + kWays) {
      place = begin + next_++ % kWays;
      tags_[place] = tag;
      shapes_[place].bytes = 0;
      return nullptr;
    }
    LaneShape& s = shapes_[place];
    const std::uint64_t phase = origin & (std::max(a.bytes, kBankBytes) - 1);
    std::uint64_t differ =
        (phase ^ s.phase) | (a.bytes ^ s.bytes) |
        (static_cast<std::uint64_t>(a.kind) ^ static_cast<std::uint64_t>(s.kind));
    for (unsigned i = 0; i < kLanes; ++i) differ |= (a.address[i] - origin) ^ s.delta[i];
    if (differ != 0) {
      for (unsigned i = 0; i < kLanes; ++i) s.delta[i] = a.address[i] - origin;
      s.kind = a.kind;
      s.bytes = a.bytes;
      s.phase = phase;
      s.known = false;
      return nullptr;
    }
    // If addresses wrap around, their order differs.
    return (s.known || learn(s, a)) && origin >= s.below && origin <= kHighest ? &s : nullptr;
  }

 private:
  static constexpr unsigned kSetBits = 3;
  static constexpr std::size_t kWays = 4, kPlaces = kWays << kSetBits;
  static constexpr std::uint64_t kHighest = std::uint64_t{1} << 32;

  // From a few lanes only: most shapes that differ, and most accesses without one, differ there.
  static std::uint64_t tag_of(const WarpAccess& a) {
    const std::uint64_t o = a.address[0];
    const std::uint64_t mixed = (a.address[1] - o) + 5 * (a.address[4] - o) +
                                17 * (a.address[8] - o) + 37 * (a.address[16] - o) +
                                101 * (a.address[31] - o) + a.bytes +
                                static_cast<std::uint64_t>(a.kind);
    return mixed * 0x9e3779b97f4a7c15u;
  }
  static bool learn(LaneShape&, const WarpAccess&);

  // Sets of kWays places; a new tag takes the next place of its set.
  std::array<std::uint64_t, kPlaces> tags_{};
  std::array<LaneShape, kPlaces> shapes_{};
  std::size_t next_ = 0;
};

}  // namespace assay::sim
