// The mbarrier object (PTX ISA, section 9.7.13.15): 64 opaque bits in shared memory, laid out here
//
//   bits 0..19   arrivals that the current phase still waits for
//   bits 20..39  arrivals that each phase needs
//   bits 40..60  bytes announced by expect_tx and not complete, two's complement
//   bits 61..63  the phase, modulo 8
#pragma once

#include <cstdint>

namespace assay::sim {

struct Mbarrier {
  std::uint32_t pending = 0, expected = 0;
  std::int32_t bytes = 0;
  std::uint32_t phase = 0;

  static constexpr std::uint32_t kMaxCount = (1u << 20) - 1;

  static Mbarrier decode(std::uint64_t word) {
    Mbarrier m;
    m.pending = static_cast<std::uint32_t>(word & kMaxCount);
    m.expected = static_cast<std::uint32_t>((word >> 20) & kMaxCount);
    m.bytes = static_cast<std::int32_t>(static_cast<std::int64_t>(word << 3) >> 43);
    m.phase = static_cast<std::uint32_t>(word >> 61);
    return m;
  }
  std::uint64_t encode() const {
    const auto tx = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes)) & 0x1fffff;
    return std::uint64_t{pending} | (std::uint64_t{expected} << 20) | (tx << 40) |
           (std::uint64_t{phase & 7u} << 61);
  }
  // True if that completes the phase.
  bool advance() {
    if (pending != 0 || bytes != 0) return false;
    ++phase;
    pending = expected;
    return true;
  }
};

struct BlockRun;
struct Warp;
// Completes the bulk copies to the block that the object at this offset in its shared memory counts.
void land_bulk_copies(BlockRun&, std::uint64_t object);
// One arrival for each active lane at the mbarrier at its address, `base` + `offset`. With
// `increment` the phase waits for one more, so that the arrival has no net effect (cp.async).
void arrive_after_copies(Warp&, std::uint32_t base, std::uint64_t offset, std::uint32_t flags,
                         bool increment);

}  // namespace assay::sim
