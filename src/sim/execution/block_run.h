// The state of an executing launch: grid, blocks, warps, and the fragments into which a warp splits
// when its lanes diverge.
//
// Divergence. A fragment is a set of lanes at one place of one frame. Of the fragments that can
// continue, the one in the deepest call runs, then the one at the lowest pc; fragments that meet at
// one place merge. With nvcc's block order, this reconverges where the control flow joins. A thread
// that waits in a loop for another thread of its warp would never see it run, so a fragment that
// has polled long enough lets the others go first (see interpreter.cpp).
//
// Calls. Each call makes a frame (registers, .param rows, local memory) for the lanes that call
// together; they return to the caller's frame one fragment at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/execution/aligned_buffer.h"
#include "sim/execution/async_copies.h"
#include "sim/execution/barriers.h"
#include "sim/execution/bulk_copies.h"
#include "sim/execution/program.h"
#include "sim/execution/warp.h"
#include "sim/execution/warpgroup.h"
#include "sim/memory/checker.h"
#include "sim/memory/global_memory.h"

namespace assay::sim {

struct BlockRun;
class ClusterRun;

// Which registers of a frame are undefined, bit by bit. Laid out like the frame.
struct FrameShadow {
  AlignedBuffer bits;
  std::vector<std::uint32_t> preds;  // lanes
};

// A read of bytes that nothing had written; or, with 0 bytes, a shuffle from a lane that takes no
// part.
struct UndefinedRead {
  std::uint32_t pc = 0, bytes = 0;
  std::uint64_t address = 0;  // of the first lane
  bool shared = false;
};

struct Frame {
  const Code* code = nullptr;
  Frame* parent = nullptr;
  const Instr* call = nullptr;     // the instruction of the parent that made it
  std::uint32_t return_block = 0;  // where the parent continues
  std::uint32_t depth = 0;
  std::uint32_t lanes = 0;        // that have neither returned nor exited; 0: the frame is free
  std::uint32_t entered = 0;      // all that have been in it since it was last free
  std::uint32_t local_base = 0;   // in the local memory of a lane
  std::uint64_t saved_bytes = 0;  // registers of the frames below, per lane
  AlignedBuffer regs;
  std::vector<std::uint32_t> preds;
  std::unique_ptr<FrameShadow> shadow;  // for a warp that has met undefined bytes
};

struct Fragment {
  enum class State : std::uint8_t { ready, at_rendezvous, at_barrier };

  Frame* frame = nullptr;
  std::uint32_t block = 0;  // index in frame->code->blocks; the fragment is at its start
  std::uint32_t mask = 0;
  State state = State::ready;
  bool passed = false;       // the rendezvous where it stands is over
  bool yielded = false;      // others go first
  std::uint8_t barrier = 0;  // at_barrier: which barrier
  std::uint16_t polls = 0;   // since it last yielded

  // The lowest key runs first.
  std::uint64_t key() const {
    return (std::uint64_t{~frame->depth} << 32) | (frame->code->first_block + block);
  }
  bool same_place(const Fragment& other) const {
    return frame == other.frame && block == other.block;
  }
};

struct WarpRun : Warp {
  Frame* frame = nullptr;      // of the executing fragment
  std::uint32_t existing = 0;  // lanes that began
  std::array<Fragment, kWarpSize> fragments;
  std::uint32_t fragment_count = 0;
  std::vector<std::unique_ptr<Frame>> frames;  // the entry's first
  std::vector<Frame*> free_frames;             // of calls that have returned
  AlignedBuffer local;                         // word w of lane l at (32 w + l) * 4
  std::uint32_t local_bytes = 0;               // in use, per lane
  AsyncCopies async;
  PendingReads products;
  std::uint64_t instructions = 0;  // begun so far, up to the end of the current basic block
  std::uint64_t clock_base = 0;    // + pc: the value of %clock
  std::uint64_t accounted = 0;     // how many of these are already in GridRun::instructions
  std::int64_t slice = 0;          // instructions until the warp yields, see interpreter.cpp
  std::uint64_t limit = 0;         // key of the fragment that is next

  // Definedness: see definedness.h.
  bool tainted = false;              // some register may hold undefined bits
  bool replaying = false;            // handlers move undefined-bit masks instead of values
  std::uint32_t seen_undefined = 0;  // lanes in which the instruction read undefined bytes
  UndefinedRead last_undefined;
  std::vector<std::uint32_t> local_undefined;  // lanes by byte of local memory; empty: none
  // One past the last instruction of the executing basic block; null ends it after this one.
  const Instr* block_end = nullptr;
  std::uint32_t until_scan = 0, scan_interval = 0;        // blocks
  std::vector<std::byte> saved, results, changed, slots;  // operands of one instruction

  // Sets the lanes that the next handler works on.
  void set_active(std::uint32_t mask) {
    if (mask != active) expand_active(mask);
  }
  // Not inline: otherwise the interpreter's loop would keep vector constants live across every
  // handler call.
  void expand_active(std::uint32_t mask);
  // Makes `f` the current frame.
  void enter_frame(Frame* f) {
    frame = f;
    regs = f->regs.data();
    preds = f->preds.data();
    extra = f->code->extra.data();
  }
};

// State shared by the blocks of a launch.
struct GridRun {
  const Program* program = nullptr;
  LaunchConfig config;
  std::span<const std::byte> params;
  GlobalMemory* memory = nullptr;
  LaunchChecker* checker = nullptr;
  std::uint64_t workspace = 0;  // for a cooperative grid's barrier
  std::uint64_t instruction_limit = 0;
  std::uint64_t max_output_bytes = 0;
  std::uint64_t shuffle_seed = 0;
  bool clusters = false;     // blocks run in clusters, if only of one block each
  bool parallel = false;     // blocks run on several host threads
  bool count_by_pc = false;  // report what each instruction did
  // Each block is held to the limit separately, and together with the blocks before it in order.
  // This can be decided independently of the number of host threads that run the blocks.
  bool limit_by_block = false;
  std::atomic<std::uint64_t> instructions{0};  // unless limit_by_block
  std::atomic<std::uint32_t> local_bytes{0};   // the most that a thread has had in use
  // For the process, on the clock of processor_ns(); 0: none. The number of instructions does not
  // bound the cost of simulating them.
  std::uint64_t processor_deadline = 0;

  // Of a block, static and dynamic; and where the memory that the system reserves follows.
  std::uint32_t shared_bytes() const;
  std::uint32_t reserved_shared() const { return (shared_bytes() + 15) / 16 * 16; }
};

// Executions of basic blocks, by Code::first_block + index.
struct BlockCounts {
  explicit BlockCounts(const Program& p) : executions(p.blocks), lanes(p.blocks) {}
  std::vector<std::uint64_t> executions, lanes;
};

// Totals of the blocks that ended on one host thread.
struct BlockTotals {
  explicit BlockTotals(const Program& p) : counts(p) {}
  BlockCounts counts;
  UnitWork total, longest;  // longest: for each unit, the most that one block used
  std::uint64_t longest_warp = 0;
};

struct BlockRun {
  explicit BlockRun(GridRun&);

  // Begins the block with this linear index.
  void begin(std::uint64_t block);
  // Adds what the block did, once it has ended.
  void end(BlockTotals&);
  bool warps_left() const {
    for (const WarpRun& w : warps) {
      if (w.fragment_count != 0) return true;
    }
    return false;
  }

  GridRun* grid;
  BlockCounts counts;  // of the current block
  std::uint64_t index = 0;
  std::uint32_t ctaid[3] = {0, 0, 0};
  ClusterRun* cluster = nullptr;  // set if GridRun::clusters
  std::uint32_t rank = 0;         // in the cluster
  AlignedBuffer shared;
  BlockChecker checker;
  Counters* counters;          // the checker's, for all its blocks
  std::uintptr_t global_zero;  // + an address in global memory: the host address of its byte
  std::vector<WarpRun> warps;
  std::vector<std::uint32_t> order;  // the order in which warps take turns
  Barriers barriers;
  BulkCopies bulk;
  std::string output;                          // of printf
  std::uint64_t instructions = 0;              // executed and accounted for
  std::uint32_t last_pc = 0, last_thread = 0;  // when accounting was last done
  std::uint64_t unwatched = 0;                 // approximate work since the deadline was checked

 private:
  // For the units that are counted as things happen, over all of the checker's blocks so far.
  UnitWork dynamic_work() const;
  UnitWork before_;  // when the block began
};

inline constexpr const char* kLimitText =
    "the launch executed more instructions than its limit allows";
inline constexpr const char* kDeadlineText =
    "the launch takes more processor time to simulate than its limit of instructions allows";

// Thrown through the interpreter to end the launch.
struct LaunchFailure {
  bool recorded = false;  // the checker already has the finding; the rest is unset
  FindingKind kind{};
  std::uint64_t block = 0;   // linear
  std::uint32_t thread = 0;  // linear in the block
  std::uint32_t pc = 0;
  std::string text;
};

inline WarpRun& run_of(Warp& w) { return static_cast<WarpRun&>(w); }

// Ends the launch because of a finding that the checker recorded.
[[noreturn]] void fail_recorded(Warp&);

}  // namespace assay::sim
