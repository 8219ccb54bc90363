// What blocks did to each 4-byte word of global memory. It persists from launch to launch: entries
// name their block by a segment number that no two launches share, so nothing has to be cleared.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "sim/address_map.h"
#include "sim/memory/access.h"
#include "sim/memory/lazy_map.h"

namespace assay::sim {

// An access of a word. From the lowest bit: thread 10, bytes of the word 4, kind 2 (for a plain
// write the lower one says that the launch's writes differ, see kDiffers), uninitialised 1, pc 20,
// segment 26. 0: none.
using ShadowEntry = std::uint64_t;

namespace shadow {

inline constexpr unsigned kBytesShift = 10, kKindShift = 14, kPcShift = 17, kSegmentShift = 37;
inline constexpr ShadowEntry kAllBytes = ShadowEntry{15} << kBytesShift;
inline constexpr ShadowEntry kUninitialised = ShadowEntry{1} << 16;
// For plain writes: not everything that the launch wrote to the word was the same.
inline constexpr ShadowEntry kDiffers = ShadowEntry{1} << kKindShift;
inline constexpr std::uint32_t kMaxSegment = (1u << 26) - 1, kMaxPc = (1u << 20) - 1;

inline constexpr ShadowEntry kSegmentMask = ~ShadowEntry{0} << kSegmentShift;

constexpr ShadowEntry at_segment(std::uint32_t s) { return ShadowEntry{s} << kSegmentShift; }
constexpr std::uint32_t segment_of(ShadowEntry e) {
  return static_cast<std::uint32_t>(e >> kSegmentShift);
}
constexpr std::uint32_t thread_of(ShadowEntry e) { return e & 1023; }
constexpr std::uint32_t bytes_of(ShadowEntry e) { return (e >> kBytesShift) & 15; }
constexpr std::uint32_t pc_of(ShadowEntry e) {
  return static_cast<std::uint32_t>(e >> kPcShift) & kMaxPc;
}
constexpr bool overlap(ShadowEntry a, ShadowEntry b) { return (a & b & kAllBytes) != 0; }
// The bits of the word's bytes that the entry names.
constexpr std::uint32_t bits_of_bytes(ShadowEntry e) {
  // Moves each bit to the lowest of its byte, then spreads it over the byte.
  return ((bytes_of(e) * 0x00204081u) & 0x01010101u) * 0xffu;
}

// For entries that are not plain writes.
constexpr ShadowEntry kind_bits(AccessKind k) {
  const ShadowEntry kind = is_read_modify_write(k)         ? 1
                           : k == AccessKind::atomic_load  ? 2
                           : k == AccessKind::atomic_store ? 3
                                                           : 0;
  return kind << kKindShift;
}
constexpr AccessKind kind_of(ShadowEntry e) {
  constexpr AccessKind kinds[] = {AccessKind::load, AccessKind::atomic, AccessKind::atomic_load,
                                  AccessKind::atomic_store};
  return kinds[(e >> kKindShift) & 3];
}

}  // namespace shadow

class RaceShadow {
 public:
  static constexpr std::uint64_t kWordBytes = 4, kChunkWords = 1024;

  // 4 KiB of memory. Each number is the first segment of the launch for which the fact holds.
  struct Chunk {
    std::uint32_t written = 0;  // some word has a plain write
    std::uint32_t touched = 0;  // some word has another access
    std::uint32_t flagged = 0;  // in the list of chunks to be evaluated when the launch has ended
    std::uint32_t lock = 0;
  };

  // Two plain writes and two other accesses of each word; the second of a pair is only used if
  // there is a first.
  struct Words {
    ShadowEntry *write[2], *other[2];
  };

  // For `span` bytes from kGlobalRange.begin.
  explicit RaceShadow(std::uint64_t span);

  // Begins a launch. Its blocks have the segments first, first + 1, ...; lower segments are past.
  std::uint32_t open(std::uint64_t blocks);
  // Ends block `block`'s segment and returns the next one, which has that clock. If numbers run out
  // (after 2^25 fences in a launch), the segment stays the same, which can only hide races.
  std::uint32_t next_segment(std::uint32_t current, std::uint32_t block, std::uint32_t clock);

  struct Owner {
    std::uint32_t block = 0, clock = 0;
  };
  Owner owner(std::uint32_t segment) const {
    if (segment - first_ < blocks_) return {segment - first_, 0};
    return owners_.as<Owner>()[segment];
  }
  std::uint32_t block_of(ShadowEntry e) const { return owner(shadow::segment_of(e)).block; }

  const Words& words() const { return words_; }
  // What plain writes last stored in each word, if they did in this launch.
  std::uint32_t* values() const { return values_.as<std::uint32_t>(); }
  Chunk& chunk(std::uint64_t word) const { return chunks_.as<Chunk>()[word / kChunkWords]; }
  static std::uint64_t word_of(std::uint64_t address) {
    return (address - kGlobalRange.begin) / kWordBytes;
  }

  // Between launches, when everything recorded is past: returns the range's shadow to the system.
  void forget(std::uint64_t address, std::uint64_t bytes);

 private:
  std::array<LazyMap, 4> maps_;
  Words words_{};
  LazyMap values_, chunks_, owners_;
  std::uint32_t first_ = 0, blocks_ = 0;
  std::atomic<std::uint32_t> next_{1};
};

}  // namespace assay::sim
