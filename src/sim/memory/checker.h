// The checks and counters of memory accesses during one launch.
//
// Races. Shared memory: two accesses of one word by two threads of a block, at least one a write, not
// both atomic, race unless a barrier or (within a warp) a warp-wide .sync operation orders them. The
// clock of a warp advances at each barrier it completes, and a barrier joins the clocks of the warps that
// took part (a vector clock per warp, Flanagan and Freund 2009), so named barriers of part of a block
// order only those. Global memory: likewise two blocks (threads of one block are not told apart), ordered
// by what a fence and an atomic operation release and an atomic operation on the same address, by another
// block, acquires. Two lanes of one store that write different values to one address race; equal
// values do not.
//
// Nothing here changes a value: the interpreter moves the data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/counters.h"
#include "sim/finding.h"
#include "sim/memory/access.h"
#include "sim/memory/global_memory.h"

namespace assay::sim {

// A finding before it is put into words: places are instruction indices, threads linear.
struct RawFinding {
  FindingKind kind{};
  std::uint32_t pc = 0;
  std::uint64_t block = 0;           // linear
  std::uint32_t thread = 0;          // linear within the block
  AccessKind access{};
  std::uint64_t address = 0;         // of the offending lane; of shared: offset
  std::uint32_t bytes = 0;
  bool shared = false;
  // Races: the earlier access.
  std::uint32_t other_pc = 0;
  std::uint64_t other_block = 0;
  std::uint32_t other_thread = 0;
  AccessKind other_access{};
  std::uint64_t count = 1;
};

struct CheckOptions {
  bool races = true;
  bool uninitialised = true;   // bounds and alignment are always checked
};

// What all blocks of a launch share. Thread-safe: blocks may run on several host threads, and neither
// findings nor their order depends on how many (one finding per kind and place(s): the one of the
// lowest block, then thread).
class LaunchChecker {
 public:
  LaunchChecker(GlobalMemory&, std::uint64_t blocks, CheckOptions);
  ~LaunchChecker();
  std::vector<RawFinding> findings() const;  // sorted

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// The block that a host thread executes. Reused from block to block by begin_block.
class BlockChecker {
 public:
  BlockChecker(LaunchChecker&, std::uint32_t shared_bytes, std::uint32_t warps);
  ~BlockChecker();

  // Shared memory becomes uninitialised, clocks start anew. Of a cooperative launch there is one
  // BlockChecker per block instead.
  void begin_block(std::uint64_t block);

  // Check and count an access. False: it must not happen (out of bounds, misaligned, use after free,
  // write to read-only memory) and the launch fails; the finding is recorded.
  bool global(const WarpAccess&);
  bool shared(const WarpAccess&);
  bool local(const WarpAccess&, std::uint32_t local_bytes);  // address: offset in the window

  // Whether [lowest address, highest + bytes) of the access was found in one allocation by the last
  // call of global(): then its host memory is `base() + (address - base_address())`.
  std::byte* base() const;
  std::uint64_t base_address() const;

  // Order.
  void barrier(std::uint32_t warps_mask);  // these warps (bit w) completed a barrier together
  void arrive(std::uint32_t warp, std::uint32_t barrier);  // bar.arrive: its writes are ordered before
  void warp_sync(std::uint32_t warp, std::uint32_t lanes);  // bar.warp.sync, shfl.sync, ...
  void fence();                            // membar.gl, fence.*.gpu or wider, by any thread of the block

  // Findings that others make; the same de-duplication.
  void report(const RawFinding&);

  Counters& counters();                    // of the blocks run by this checker so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::sim
