// The checks and counters of memory accesses during one launch.
//
// Races in shared memory. Two accesses of one byte by two threads of a block, at least one a write,
// not both atomic, race unless a barrier or (within a warp) a .sync operation orders them. A
// barrier joins what the warps that took part know of one another (a vector clock per warp, after
// Flanagan and Freund, "FastTrack", PLDI 2009), so named barriers of part of a block order only
// those. An mbarrier orders what warps did before they arrived before what follows a wait for the
// phase; an atomic or volatile flag orders what lies before its writer's fence before what follows
// its reading. All of these take a warp for one, whatever lanes take part. The first race of each
// byte is found, and nothing that is ordered is reported; but for two things that are not
// remembered, so that a race with them alone is missed: where only part of a warp takes part in a
// .sync operation, reads of a word by the warp before its last one; and atomic loads where there is
// a plain read too. A lane may read what it stored together with other lanes, the same value.
//
// Races in global memory. Two accesses of one byte by two blocks (threads of one block are not told
// apart), at least one a plain write, race unless ordered. Order: fence() closes what the block did
// so far, a later atomic write of the block releases that at its address, and an atomic read of the
// address by another block acquires it. An atomic write and a plain read do not race: a
// compare-and-swap loop begins with such a read (CUDA C++ Programming Guide, "Atomic Functions"),
// and words are not torn. What a block read before it stores a flag (a volatile or stronger store,
// no read-modify-write) is done when another sees the flag, without a fence: that is how tiles hand
// their prefixes on in CUB and Thrust, which may overwrite then what the tile read. Each 4-byte
// word remembers two writing and two other blocks with the bytes they touched. Between unordered
// blocks that suffices to find every racy word (of blocks that share a word without sharing bytes,
// if they are two); once some are ordered, a race with a third reader may be missed.
//
// Two lanes of one store that write different values to one address race; equal values do not.
// Other stores that race are a note of their own, FindingKind::equal_stores, if they write the
// same: in global memory all that the launch wrote to the word, and once some blocks are ordered,
// and in shared memory, the later store what the word held. A store whose values are unknown
// differs.
//
// Bytes that nothing has written are no finding when they are read, but for a read-modify-write
// that computes with them: the access says in which lanes it read some, and the interpreter follows
// them (see definedness.h). A store of undefined bytes makes its target undefined again.
//
// Nothing here changes a value: the interpreter moves the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/counters.h"
#include "sim/finding.h"
#include "sim/memory/access.h"
#include "sim/memory/global_memory.h"
#include "sim/memory/replay_table.h"
#include "sim/memory/traffic.h"

namespace assay::sim {

// What a value that nothing has written decided.
enum class UndefinedUse : std::uint8_t {
  read,  // by a read-modify-write
  branch,
  address,
  operand,  // of an atomic operation
  barrier,
  printed,
  stored,  // where the host reads it
};

// A finding before it is put into words: places are instruction indices, threads linear.
struct RawFinding {
  FindingKind kind{};
  std::uint32_t pc = 0;
  std::uint64_t block = 0;   // linear
  std::uint32_t thread = 0;  // linear within the block
  AccessKind access{};
  std::uint64_t address = 0;  // of the offending lane; of shared: offset
  std::uint32_t bytes = 0;
  bool shared = false;
  // Uninitialised: unless `read`, address, bytes and shared are those of a read of what nothing had
  // written, which may be the cause, at other_pc; if `stored` of the store.
  UndefinedUse use = UndefinedUse::read;
  // Races: the earlier access.
  std::uint32_t other_pc = 0;
  std::uint64_t other_block = 0;
  std::uint32_t other_thread = 0;
  AccessKind other_access{};
  // How often. Of races and uninitialised reads of global memory: how many words, as far as no
  // block has acquired anything yet (every word counts once, whatever the order of blocks).
  std::uint64_t count = 1;

  bool operator==(const RawFinding&) const = default;
};

// Instruction indices from here on are not told apart as `other_pc`.
inline constexpr std::uint32_t kLastPlace = (1u << 20) - 1;
// Blocks of one launch that races can be told of.
inline constexpr std::uint64_t kMaxCheckedBlocks = std::uint64_t{1} << 25;

struct CheckOptions {
  bool races = true;
  bool uninitialised = true;       // bounds and alignment are always checked
  bool concurrent = true;          // false: one host thread runs all blocks, which saves the locks
  Footprint* footprint = nullptr;  // gets what the launch accesses, if anyone asks
  ReplayTable* replays = nullptr;  // likewise what bank conflicts cost
};

// Stores of undefined bytes at one place.
struct UndefinedStores {
  RawFinding first;                  // of the lowest block, then thread
  std::uint64_t begin = 0, end = 0;  // addresses that they lie between
};

// What all blocks of a launch share. Thread-safe: blocks may run on several host threads, and
// neither findings nor their order depends on how many (one finding per kind and place(s): the one
// of the lowest block, then thread), except that a kernel whose blocks wait for one another
// (acquire) has races as its schedule has. One launch at a time per GlobalMemory, which must
// outlive it.
class LaunchChecker {
 public:
  // Throws std::length_error when races are checked and there are more than kMaxCheckedBlocks.
  LaunchChecker(GlobalMemory&, std::uint64_t blocks, CheckOptions);
  ~LaunchChecker();
  // Sorted. Once the blocks have ended and before memory is allocated or freed.
  std::vector<RawFinding> findings() const;
  std::vector<UndefinedStores> undefined_stores() const;  // to global memory, by place

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// The block that a host thread executes. Reused from block to block by begin_block.
class BlockChecker {
 public:
  // `shared`: the memory itself, which holds what stores have written before the one that is
  // checked; null: unknown.
  BlockChecker(LaunchChecker&, std::uint32_t shared_bytes, std::uint32_t warps,
               const std::byte* shared = nullptr);
  ~BlockChecker();

  // Shared memory becomes uninitialised, clocks start anew. Of a cooperative launch there is one
  // BlockChecker per block instead.
  void begin_block(std::uint64_t block);

  // Check and count an access. False: it must not happen (out of bounds, misaligned, use after
  // free, write to read-only memory) and the launch fails; the finding is recorded.
  bool global(const WarpAccess&);
  bool shared(const WarpAccess&);
  bool local(const WarpAccess&, std::uint32_t local_bytes);  // address: offset in the window
  // Lanes that read a byte which nothing had written, of the last global() or shared() that met
  // one, unless that was a finding. The caller sets it back.
  std::uint32_t undefined = 0;

  // shared() for a plain load of one offset by all lanes of a warp, where nothing is wrong with it.
  // False, with nothing done: shared() must see it.
  bool load_shared_uniform(std::uint32_t warp, std::uint32_t pc, std::uint64_t offset,
                           std::uint32_t bytes);

  // After global() returned true, the host memory of every address of the access is
  // base() + (address - base_address()). Both are constants of the GlobalMemory.
  std::byte* base() const;
  std::uint64_t base_address() const;

  // Bit i: byte i of so many from the address on is undefined. Of global memory the address is
  // within an allocation, of shared it is an offset. Alignment and bounds were checked.
  std::uint32_t undefined_bytes(bool shared, std::uint64_t address, std::uint32_t bytes) const;
  // The lane's part of a store, which has been made, wrote undefined values to `bits` of its bytes.
  void store_undefined(bool shared, const WarpAccess&, std::uint32_t lane, std::uint32_t bits);

  // Order.
  // These warps (bit w) completed a barrier together; those that only arrived there are not among
  // them.
  void barrier(std::uint32_t warps_mask, std::uint32_t barrier = 0);
  // bar.arrive: what the warp did is ordered before the next completion of this barrier (0 to 15).
  void arrive(std::uint32_t warp, std::uint32_t barrier);
  void warp_sync(std::uint32_t warp, std::uint32_t lanes);  // bar.warp.sync, shfl.sync, ...
  void fence();  // membar.gl, fence.*.gpu or wider, by any thread of the block
  void fence_block(std::uint32_t warp);  // any of membar and fence, for shared memory
  // mbarriers, by their offset in shared memory: an arrival of the warp; the end of a phase; a wait
  // that found its phase over; a new object.
  void mbarrier_arrive(std::uint32_t warp, std::uint64_t object);
  void mbarrier_complete(std::uint64_t object);
  void mbarrier_wait(std::uint32_t warp, std::uint64_t object);
  void mbarrier_init(std::uint64_t object);
  // A volatile access of shared memory, which shared() takes for a plain one.
  void volatile_shared(const WarpAccess&);

  // Findings that others make; the same de-duplication.
  void report(const RawFinding&);

  Counters& counters();                     // of the blocks run by this checker so far
  const SlicePasses& slice_passes() const;  // likewise

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::sim
