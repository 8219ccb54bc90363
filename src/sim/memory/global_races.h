// Races between blocks in global memory. The rules are in checker.h, the layout in race_shadow.h.
//
// As long as no block has acquired anything, all blocks are unordered, and each word collects the
// first write and the first other access of the two lowest blocks. This result does not depend on
// the order in which blocks run. When the launch ends, the chunks in which a conflict was seen are
// evaluated. From the first acquire on, conflicts are reported as they happen, and an access
// replaces what is ordered before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/memory/access.h"
#include "sim/memory/any_bits.h"
#include "sim/memory/finding_table.h"
#include "sim/memory/global_order.h"
#include "sim/memory/lane_pattern.h"
#include "sim/memory/race_shadow.h"

namespace assay::sim {

// State shared by the blocks of a launch.
class GridRaces {
 public:
  GridRaces(RaceShadow&, std::uint64_t blocks, bool concurrent, FindingTable&);

  // Reports the races in the flagged chunks.
  void settle();

 private:
  friend class BlockRaces;
  using Chunk = RaceShadow::Chunk;

  void flag(std::uint64_t word);
  void become_ordered();
  void settle_word(std::uint64_t word);
  // Of two unordered accesses of a word, the one by the higher block counts as the later.
  void report(FindingKind, std::uint64_t word, ShadowEntry a, bool a_writes, ShadowEntry b,
              bool b_writes);

  RaceShadow& shadow_;
  FindingTable& findings_;
  const std::uint32_t blocks_, first_;  // segments
  const ShadowEntry past_;              // lower entries are from earlier launches
  const bool concurrent_;
  std::atomic<bool> ordered_{false};  // some block has acquired something
  SyncTable released_, read_;         // read_: blocks' reads, released without a fence
  std::mutex mutex_;
  std::vector<std::uint64_t> flagged_;  // chunks
};

// The executing block.
class BlockRaces {
 public:
  explicit BlockRaces(GridRaces& grid) : grid_(grid), shadow_(grid.shadow_) {}

  void begin_block(std::uint32_t block);
  void fence();
  // A barrier of several blocks, known by a number that is no address of global memory: all of them
  // release there, then all acquire.
  void release_at(std::uint64_t barrier);
  void acquire_at(std::uint64_t barrier);
  // Whether the block has acquired anything by an access.
  bool has_acquired_flag() const { return acquired_flag_; }
  // Handles an access. Lanes in `uninitialised` read bytes that were never written. True if the
  // access leaves that to settle(), which knows better whether another block writes them; otherwise
  // the caller reports it.
  bool access(const WarpAccess&, const LanePattern&, std::uint32_t uninitialised);

 private:
  // The current access.
  struct Current {
    const WarpAccess* access = nullptr;
    ShadowEntry entry = 0;        // without thread, bytes and uninitialised
    bool write = false;           // a plain one
    bool ordered = false;         // the grid is
    bool may_skip_lower = false;  // two other accesses by lower blocks make this one redundant
    const std::byte* values = nullptr;  // of a plain write, lane-major; null: unknown
    ShadowEntry past = 0, here = 0;     // entries of lower blocks, before any fence, are between
                                        // these

    // 0 if this segment already accessed all bytes: the other side has seen any conflict since.
    ShadowEntry not_mine(ShadowEntry e) const {
      return ((e ^ entry) & shadow::kSegmentMask) | (~e & shadow::kAllBytes);
    }
    // 0 if a lower block accessed all bytes, in this launch and before any fence.
    ShadowEntry not_lower(ShadowEntry e) const {
      return not_below(past, e + 1) | not_below(e, here) | (~e & shadow::kAllBytes);
    }
  };

  // Consecutive words of one chunk, accessed in full by consecutive threads.
  struct Range {
    std::uint64_t word = 0;
    std::size_t count = 0;
    std::uint32_t thread = 0;           // of the first word
    unsigned up = 0, down = 0;          // of word i: thread + (i << up >> down)
    const std::byte* values = nullptr;  // what a plain write stores; null: unknown

    std::uint32_t thread_of(std::size_t i) const {
      return thread + static_cast<std::uint32_t>((i << up) >> down);
    }
  };

  void acquire(const WarpAccess&);
  void release(const WarpAccess&);
  void release_reads(const WarpAccess&);
  void lanes(const Current&, std::uint32_t mask, std::uint32_t uninitialised);
  void range(const Current&, const Range&);
  void mark(const Current&, std::uint64_t word);
  bool quick(const Current&, const Range&) const;
  bool all_mine(const Current&, const Range&) const;
  void write_again(const Current&, const Range&);
  bool quick_scattered(const Current&, const LaneAddresses&) const;
  bool holds_values(const WarpAccess&, const LaneAddresses&) const;
  bool collect_range(const Current&, const Range&);
  bool follow_range(const Current&, const Range&);
  static void fill(ShadowEntry* list, const Range&, ShadowEntry);
  void fill_written(const Range&, ShadowEntry);
  // `value`: for a plain write, in the bytes that the entry names.
  void word(const Current&, std::uint64_t word, ShadowEntry, std::uint32_t value);
  void collect(const Current&, std::uint64_t word, ShadowEntry, std::uint32_t value);
  void follow(const Current&, std::uint64_t word, ShadowEntry, std::uint32_t value);
  bool is_ordered(ShadowEntry, bool is_read) const;
  void report(const Current&, FindingKind, ShadowEntry mine, ShadowEntry other, bool other_writes);

  GridRaces& grid_;
  RaceShadow& shadow_;
  BlockOrder order_;
  std::uint32_t block_ = 0, segment_ = 0, clock_ = 0, closed_segment_ = 0;
  bool used_ = false;   // the segment has accesses
  bool split_ = false;  // segments have ended since the last fence
  bool acquired_flag_ = false;
};

}  // namespace assay::sim
