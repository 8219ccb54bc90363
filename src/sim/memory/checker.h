// The checks and counters of memory accesses during one launch.
//
// Races in shared memory. Two accesses of one byte by two threads of a block, at least one a write,
// not both atomic, race unless a barrier or (within a warp) a .sync operation orders them. A
// barrier joins what the participating warps know of one another (a vector clock per warp, after
// Flanagan and Freund, "FastTrack", PLDI 2009), so a named barrier for part of a block orders only
// that part. An mbarrier orders what warps did before they arrived before what follows a wait for
// the phase. An atomic or volatile flag orders what precedes its writer's fence before what follows
// a read of it. All of these treat a warp as a unit, whichever lanes take part. The first race of
// each byte is found, and nothing that is ordered is reported. Two things are not remembered, so
// races with only them are missed: after a .sync operation of part of a warp, all reads of a word
// by the warp before its last one; and atomic loads of a word that also has a plain read. A lane
// may read what it stored together with other lanes, if all stored the same value.
//
// Races in the shared memories of a cluster. Likewise for two threads of two blocks, but only the
// cluster's barriers order them for this check. Once blocks of the cluster signal one another
// otherwise (an mbarrier of another block, flags in global memory or in that of another block), it
// reports nothing more. A block must not access another's memory before it has waited for a barrier
// of the cluster, since only that says that the other has begun, and a barrier must lie between the
// access and the other's end (CUDA C++ Programming Guide, "Distributed Shared Memory").
//
// Races in global memory. Two accesses of one byte by two blocks (threads of one block are not
// distinguished), at least one a plain write, race unless ordered. Order: fence() closes what the
// block did so far, a later atomic write by the block releases that at its address, and an atomic
// read of the address by another block acquires it. An atomic write and a plain read do not race: a
// compare-and-swap loop begins with such a read (CUDA C++ Programming Guide, "Atomic Functions"),
// and words are not torn. What a block read before it stores a flag (a volatile or stronger store,
// not a read-modify-write) counts as done when another block sees the flag, even without a fence:
// this is how tiles pass on their prefixes in CUB and Thrust, whose receivers may then overwrite
// what the tile read. Each 4-byte word remembers two writing and two other blocks, with the bytes
// they touched. Between unordered blocks that suffices to find every racy word (if blocks share a
// word without sharing bytes, only if they are two); once some are ordered, a race with a third
// reader may be missed.
//
// Two lanes of one store that write different values to one address race; equal values do not.
// Other racing stores of the same value are only a note, FindingKind::equal_stores. The same means:
// in global memory, that all writes of the launch to the word were equal and, once some blocks are
// ordered, or in shared memory, that the later store wrote what the word held. A store of unknown
// values counts as different.
//
// Reading bytes that nothing has written is not a finding, except for a read-modify-write that
// computes with them. The access reports the lanes that read such bytes, and the interpreter
// follows the values (see definedness.h). A store of undefined bytes makes its target undefined
// again.
//
// Nothing here changes a value; the interpreter moves the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/counters.h"
#include "sim/finding.h"
#include "sim/memory/access.h"
#include "sim/memory/cluster_races.h"
#include "sim/memory/global_memory.h"
#include "sim/memory/replay_table.h"
#include "sim/memory/traffic.h"

namespace assay::sim {

// How a value that nothing has written was used.
enum class UndefinedUse : std::uint8_t {
  read,  // by a read-modify-write
  branch,
  address,
  operand,  // by an atomic operation
  barrier,
  printed,
  stored,  // where the host reads it
};

// A finding before it is put into words: places are instruction indices, threads are linear.
struct RawFinding {
  FindingKind kind{};
  std::uint32_t pc = 0;
  std::uint64_t block = 0;   // linear
  std::uint32_t thread = 0;  // linear within the block
  AccessKind access{};
  std::uint64_t address = 0;  // of the offending lane; in shared memory: offset
  std::uint32_t bytes = 0;
  bool shared = false;
  std::uint64_t owner = 0;  // of shared memory: the block whose memory it is
  // Races between blocks of a cluster.
  std::optional<ClusterRaces::Fault> cluster;
  // Uninitialised, unless `read`: address, bytes and shared describe a read of unwritten bytes that
  // may be the cause, at other_pc; if `stored`, they describe the store.
  UndefinedUse use = UndefinedUse::read;
  // Races: the earlier access.
  std::uint32_t other_pc = 0;
  std::uint64_t other_block = 0;
  std::uint32_t other_thread = 0;
  AccessKind other_access{};
  // How often. For races and uninitialised reads in global memory: the number of words, as long as
  // no block has acquired anything (every word counts once, whatever the order of blocks).
  std::uint64_t count = 1;

  bool operator==(const RawFinding&) const = default;
};

// Instruction indices from this one on are not distinguished as `other_pc`.
inline constexpr std::uint32_t kLastPlace = (1u << 20) - 1;
// The most blocks of one launch whose races can be checked.
inline constexpr std::uint64_t kMaxCheckedBlocks = std::uint64_t{1} << 25;

struct CheckOptions {
  bool races = true;
  bool uninitialised = true;       // bounds and alignment are always checked
  bool concurrent = true;          // false: one host thread runs all blocks, which saves the locks
  Footprint* footprint = nullptr;  // receives the launch's accesses; null: not wanted
  ReplayTable* replays = nullptr;  // receives the cost of bank conflicts; null: not wanted
};

// Stores of undefined bytes at one place.
struct UndefinedStores {
  RawFinding first;                  // of the lowest block, then thread
  std::uint64_t begin = 0, end = 0;  // range of addresses that contains them
};

// State shared by all blocks of a launch. Thread-safe: blocks may run on several host threads, and
// neither the findings nor their order depends on how many (one finding per kind and place(s): that
// of the lowest block, then thread). The exception is a kernel whose blocks wait for one another
// (acquire): its races depend on its schedule. One launch at a time per GlobalMemory, which must
// outlive it.
class LaunchChecker {
 public:
  // Throws std::length_error if races are checked and there are more than kMaxCheckedBlocks.
  LaunchChecker(GlobalMemory&, std::uint64_t blocks, CheckOptions);
  ~LaunchChecker();
  // Sorted. Call it once the blocks have ended, before memory is allocated or freed.
  std::vector<RawFinding> findings() const;
  std::vector<UndefinedStores> undefined_stores() const;  // to global memory, by place

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Checks the block that a host thread executes. begin_block reuses it for the next block.
class BlockChecker {
 public:
  // `shared`: the memory itself, holding what was stored before the checked store; null: unknown.
  BlockChecker(LaunchChecker&, std::uint32_t shared_bytes, std::uint32_t warps,
               const std::byte* shared = nullptr);
  ~BlockChecker();

  // Makes shared memory uninitialised and resets the clocks. A cooperative launch has one
  // BlockChecker per block instead.
  void begin_block(std::uint64_t block);

  // Check and count an access. False: the access must not happen (out of bounds, misaligned, use
  // after free, write to read-only memory), so the launch fails; the finding is recorded.
  bool global(const WarpAccess&);
  bool shared(const WarpAccess&);
  bool local(const WarpAccess&, std::uint32_t local_bytes);  // address: offset in the window
  // shared() for a plain load by hardware that shares it with others, so that it is not counted;
  bool shared_uncounted(const WarpAccess&);
  // and the race check alone, for hardware that may read once more.
  void shared_again(const WarpAccess&);
  // A store that hardware may make from now on, because a copy has been started. For the race check
  // it is made now, and again when the simulator makes it, counts it and checks the rest. The copies
  // of a warp's lanes, or a range.
  void shared_store_ahead(const WarpAccess&);
  void shared_store_ahead(const RangeAccess&);
  // Likewise for ranges. Those in global memory count as accesses of whole warps, and a race names
  // any thread of the warp; those in shared memory have no bank conflicts.
  bool global_range(const RangeAccess&);
  bool shared_range(const RangeAccess&);
  std::uint64_t shared_bytes() const;
  bool checks_races() const;
  bool finds_undefined() const;
  // These bytes of shared memory have been written by the system.
  void define_shared(std::uint64_t offset, std::uint64_t bytes);
  // Lanes that read an unwritten byte in the last access that met one, unless that was a finding;
  // of a range, not 0 if it has such a byte. The caller resets it.
  std::uint32_t undefined = 0;

  // shared() for a plain load of one offset by all lanes of a warp, if nothing is wrong with it.
  // False, having done nothing: call shared().
  bool load_shared_uniform(std::uint32_t warp, std::uint32_t pc, std::uint64_t offset,
                           std::uint32_t bytes);

  // After global() returned true, the host memory of every address of the access is
  // base() + (address - base_address()). Both are constants of the GlobalMemory.
  std::byte* base() const;
  std::uint64_t base_address() const;

  // Which of `bytes` bytes starting at the address are undefined: bit i for byte i. In global
  // memory the address must be within an allocation; in shared memory it is an offset. Alignment
  // and bounds must have been checked.
  std::uint32_t undefined_bytes(bool shared, std::uint64_t address, std::uint32_t bytes) const;
  // Reports that the lane's part of a store, already executed, wrote undefined values to these
  // `bits` of its bytes.
  void store_undefined(bool shared, const WarpAccess&, std::uint32_t lane, std::uint32_t bits);

  // Order.
  // These warps (bit w) completed a barrier together; excludes those that only arrived.
  void barrier(std::uint32_t warps_mask, std::uint32_t barrier = 0);
  // bar.arrive: orders what the warp did before the next completion of this barrier (0 to 15).
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
  // A volatile access of shared memory, which shared() treats as a plain one.
  void volatile_shared(const WarpAccess&);

  // Clusters. The block is the one of this rank; `races` is null if races are not checked.
  void join_cluster(std::uint32_t rank, ClusterRaces* races);
  // shared() for the memory of another block of the cluster, in which the addresses are offsets.
  bool shared_of(BlockChecker& owner, const WarpAccess&);
  // Something other than the cluster's barrier may order its blocks from now on.
  void cluster_ordered_otherwise();
  // The cluster's barrier: an arrival of lanes of the warp, `all`: the last ones; its completion, by
  // whose number the barrier is known (then these warps have waited, `all`: no other is left); a
  // later wait of the warp. The end of the block.
  void cluster_arrive(std::uint32_t warp, bool all);
  void cluster_release(std::uint64_t barrier);
  void cluster_complete(std::uint64_t barrier, std::uint32_t waiting, bool all);
  void cluster_wait(std::uint32_t warp);
  void cluster_end();

  // Adds a finding made elsewhere, with the same de-duplication.
  void report(const RawFinding&);

  Counters& counters();                     // of the blocks run by this checker so far
  const SlicePasses& slice_passes() const;  // likewise

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::sim
