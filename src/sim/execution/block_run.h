// The state of a launch in execution: grid, blocks, warps, and the fragments that a warp falls into
// when its lanes take different ways.
//
// Divergence. A fragment is a set of lanes at one place of one frame. Of the fragments that can go
// on, the one in the deepest call, then at the lowest pc, runs; fragments that meet at one place
// merge. With the order in which nvcc lays out blocks that reconverges where the control flow
// joins. A thread that waits for another of its warp in a loop would never see it run: a fragment
// that polled long enough lets the others go first (see interpreter.cpp).
//
// Calls. Each call makes a frame (registers, .param rows, local memory) for the lanes that call
// together; they return one fragment at a time into the caller's frame.
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
#include "sim/execution/program.h"
#include "sim/execution/warp.h"
#include "sim/memory/checker.h"
#include "sim/memory/global_memory.h"

namespace assay::sim {

struct BlockRun;

// Bit by bit, which registers of a frame are undefined: laid out like the frame itself.
struct FrameShadow {
  AlignedBuffer bits;
  std::vector<std::uint32_t> preds;  // lanes
};

// A read of bytes that nothing had written.
struct UndefinedRead {
  std::uint32_t pc = 0, bytes = 0;
  std::uint64_t address = 0;  // of the first lane
  bool shared = false;
};

struct Frame {
  const Code* code = nullptr;
  Frame* parent = nullptr;
  const Instr* call = nullptr;     // the instruction of the parent that made it
  std::uint32_t return_block = 0;  // where the parent goes on
  std::uint32_t depth = 0;
  std::uint32_t lanes = 0;        // that have neither returned nor exited; 0: free
  std::uint32_t local_base = 0;   // in the local memory of a lane
  std::uint64_t saved_bytes = 0;  // registers of the frames below, a lane
  AlignedBuffer regs;
  std::vector<std::uint32_t> preds;
  std::unique_ptr<FrameShadow> shadow;  // of a warp that met undefined bytes
};

struct Fragment {
  enum class State : std::uint8_t { ready, at_rendezvous, at_barrier };

  Frame* frame = nullptr;
  std::uint32_t block = 0;  // index in frame->code->blocks, at whose begin it stands
  std::uint32_t mask = 0;
  State state = State::ready;
  bool passed = false;       // the rendezvous at which it stands is over
  bool yielded = false;      // others go first
  std::uint8_t barrier = 0;  // at_barrier: which
  std::uint16_t polls = 0;   // since it last yielded

  // The lowest runs first.
  std::uint64_t key() const {
    return (std::uint64_t{~frame->depth} << 32) | (frame->code->first_block + block);
  }
  bool same_place(const Fragment& other) const {
    return frame == other.frame && block == other.block;
  }
};

struct WarpRun : Warp {
  Frame* frame = nullptr;      // of the fragment in execution
  std::uint32_t existing = 0;  // lanes that began
  std::array<Fragment, kWarpSize> fragments;
  std::uint32_t fragment_count = 0;
  std::vector<std::unique_ptr<Frame>> frames;  // the entry's first
  std::vector<Frame*> free_frames;             // of calls that have returned
  AlignedBuffer local;                         // word w of lane l at (32 w + l) * 4
  std::uint32_t local_bytes = 0;               // in use, a lane
  AsyncCopies async;
  std::uint64_t instructions = 0;  // begun so far, up to the end of the current basic block
  std::uint64_t clock_base = 0;    // + pc: what %clock reads
  std::uint64_t accounted = 0;     // of those, already in GridRun::instructions
  std::int64_t slice = 0;          // instructions until the warp looks up, see interpreter.cpp
  std::uint64_t limit = 0;         // key of the fragment that goes next

  // Definedness: see definedness.h.
  bool tainted = false;              // some register may hold undefined bits
  bool replaying = false;            // handlers move bits that say what is undefined, not values
  std::uint32_t seen_undefined = 0;  // lanes in which the instruction read undefined bytes
  UndefinedRead last_undefined;
  std::vector<std::uint32_t> local_undefined;  // by byte of local memory: lanes; empty: none
  // Behind the last instruction of the basic block in execution; null ends it after this one.
  const Instr* block_end = nullptr;
  std::uint32_t until_scan = 0, scan_interval = 0;        // blocks
  std::vector<std::byte> saved, results, changed, slots;  // of one instruction's operands

  // Sets the lanes that the next handler works on.
  void set_active(std::uint32_t mask) {
    if (mask != active) expand_active(mask);
  }
  // Not inline: the interpreter's loop would carry vector constants across every call of a handler.
  void expand_active(std::uint32_t mask);
  // Makes `f` the current frame.
  void enter_frame(Frame* f) {
    frame = f;
    regs = f->regs.data();
    preds = f->preds.data();
    extra = f->code->extra.data();
  }
};

// What the blocks of a launch share.
struct GridRun {
  const Program* program = nullptr;
  LaunchConfig config;
  std::span<const std::byte> params;
  GlobalMemory* memory = nullptr;
  LaunchChecker* checker = nullptr;
  std::uint64_t workspace = 0;  // of a cooperative grid's barrier
  std::uint64_t instruction_limit = 0;
  std::uint64_t max_output_bytes = 0;
  std::uint64_t shuffle_seed = 0;
  bool parallel = false;  // blocks run on several host threads
  // Each block has the limit for itself, and those before it in order together with it: what a
  // launch whose blocks may run on several host threads can tell without regard to their number.
  bool limit_by_block = false;
  std::atomic<std::uint64_t> instructions{0};  // unless limit_by_block
  // Of the process, on the clock of processor_ns(); 0: none. What it costs to simulate an
  // instruction is not bounded by their number.
  std::uint64_t processor_deadline = 0;
};

// Executions of basic blocks, by Code::first_block + index.
struct BlockCounts {
  explicit BlockCounts(const Program& p) : executions(p.blocks), lanes(p.blocks) {}
  std::vector<std::uint64_t> executions, lanes;
};

// What the blocks that ended on one host thread did.
struct BlockTotals {
  explicit BlockTotals(const Program& p) : counts(p) {}
  BlockCounts counts;
  UnitWork total, longest;  // longest: of each unit what one block took of it at most
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
  BlockCounts counts;  // of the present block
  std::uint64_t index = 0;
  std::uint32_t ctaid[3] = {0, 0, 0};
  AlignedBuffer shared;
  BlockChecker checker;
  Counters* counters;          // the checker's, of all its blocks
  std::uintptr_t global_zero;  // + an address of global memory: where its byte is
  std::vector<WarpRun> warps;
  std::vector<std::uint32_t> order;  // in which warps take turns
  Barriers barriers;
  std::string output;                          // of printf
  std::uint64_t instructions = 0;              // executed and accounted for
  std::uint32_t last_pc = 0, last_thread = 0;  // when that was last done
  std::uint64_t unwatched = 0;                 // work since the deadline was looked at, roughly

 private:
  // Of the units that are counted as things happen, by all blocks of the checker so far.
  UnitWork dynamic_work() const;
  UnitWork before_;  // when the block began
};

inline constexpr const char* kLimitText =
    "the launch executed more instructions than its limit allows";
inline constexpr const char* kDeadlineText =
    "the launch takes more processor time to simulate than its limit of instructions allows";

// Thrown through the interpreter: the launch ends.
struct LaunchFailure {
  bool recorded = false;  // the checker has the finding already; the rest is void
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
