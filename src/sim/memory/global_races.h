// Races between blocks in global memory. The rules stand in checker.h, the layout in race_shadow.h.
//
// As long as no block has acquired anything, all blocks are unordered, and each word collects the
// first write and the first other access of the two lowest blocks: a result that does not depend on
// the order in which blocks run. Chunks in which a conflict was seen are read off when the launch
// ends. From the first acquire on, conflicts are reported as they happen, and what is ordered
// before an access makes room for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/memory/access.h"
#include "sim/memory/finding_table.h"
#include "sim/memory/global_order.h"
#include "sim/memory/lane_pattern.h"
#include "sim/memory/race_shadow.h"

namespace assay::sim {

// What the blocks of a launch share.
class GridRaces {
 public:
  GridRaces(RaceShadow&, std::uint64_t blocks, bool concurrent, FindingTable&);

  // Reports what the flagged chunks hold.
  void settle();

 private:
  friend class BlockRaces;
  using Chunk = RaceShadow::Chunk;

  void flag(std::uint64_t word);
  void become_ordered();
  void settle_word(std::uint64_t word);
  // Of two unordered accesses of a word, the one of the higher block counts as the later.
  void report(std::uint64_t word, ShadowEntry a, bool a_writes, ShadowEntry b, bool b_writes);

  RaceShadow& shadow_;
  FindingTable& findings_;
  const std::uint32_t blocks_, first_;  // segments
  const ShadowEntry past_;              // entries below are of earlier launches
  const bool concurrent_;
  std::atomic<bool> ordered_{false};  // some block has acquired something
  SyncTable released_;
  std::mutex mutex_;
  std::vector<std::uint64_t> flagged_;  // chunks
};

// The block in execution.
class BlockRaces {
 public:
  explicit BlockRaces(GridRaces& grid) : grid_(grid), shadow_(grid.shadow_) {}

  void begin_block(std::uint32_t block);
  void fence();
  // The access happens. Of lanes in `uninitialised`, bytes that they read were never written; true
  // if the access keeps that for settle(), which knows better whether another block writes them:
  // the caller reports it otherwise.
  bool access(const WarpAccess&, const LanePattern&, std::uint32_t uninitialised);

 private:
  // The access in work.
  struct Current {
    const WarpAccess* access = nullptr;
    ShadowEntry entry = 0;  // without thread, bytes and uninitialised
    bool write = false;     // a plain one
    bool ordered = false;   // the grid is
  };

  // Consecutive words of one chunk that consecutive threads access, all bytes of them.
  struct Range {
    std::uint64_t word = 0;
    std::size_t count = 0;
    std::uint32_t thread = 0;   // of the first word
    unsigned up = 0, down = 0;  // of word i: thread + (i << up >> down)

    std::uint32_t thread_of(std::size_t i) const {
      return thread + static_cast<std::uint32_t>((i << up) >> down);
    }
  };

  void acquire(const WarpAccess&);
  void release(const WarpAccess&);
  void lanes(const Current&, std::uint32_t uninitialised);
  void range(const Current&, const Range&);
  void mark(const Current&, std::uint64_t word);
  bool quick(const Current&, const Range&) const;
  bool collect_range(const Current&, const Range&);
  bool follow_range(const Current&, const Range&);
  static void fill(ShadowEntry* list, const Range&, ShadowEntry);
  void word(const Current&, std::uint64_t word, ShadowEntry);
  void collect(const Current&, std::uint64_t word, ShadowEntry);
  void follow(const Current&, std::uint64_t word, ShadowEntry);
  bool is_ordered(ShadowEntry) const;
  void report(const Current&, ShadowEntry mine, ShadowEntry other, bool other_writes);

  GridRaces& grid_;
  RaceShadow& shadow_;
  BlockOrder order_;
  std::uint32_t block_ = 0, segment_ = 0, clock_ = 0, closed_segment_ = 0;
  bool used_ = false;  // the segment has accesses
};

}  // namespace assay::sim
