// The interpreter of one warp.
//
// A fragment runs until it ends, waits, or another is due. Within a basic block only guards are
// checked; at the start of a block come the counts and, for a .sync instruction, the meeting of its
// lanes.
//
// Fairness. After kPollsPerTurn instructions by which threads wait for one another (atomics with a
// result, volatile and acquiring loads, nanosleep, mbarrier tests), a fragment yields: the warp's
// other fragments run for a short slice, then other warps, then other blocks. A thread that waits
// with plain loads is caught by the long slice.
#include "sim/execution/interpreter.h"

#include <bit>

#include "sim/execution/calls.h"
#include "sim/execution/cluster_run.h"
#include "sim/execution/deadlock.h"
#include "sim/execution/definedness.h"
#include "sim/execution/fragments.h"

namespace assay::sim {
namespace {

constexpr std::uint16_t kPollsPerTurn = 64;
constexpr std::int64_t kLongSlice = 1 << 20, kShortSlice = 1 << 10;

// The deadline is checked after this many instructions. A warp's turn counts as kTurn, so that
// blocks that do nothing are noticed too.
constexpr std::uint64_t kWatchEvery = 1 << 16, kTurn = 16;

bool past_deadline(BlockRun& block, std::uint64_t executed) {
  if (block.grid->processor_deadline == 0) return false;
  block.unwatched += executed + kTurn;
  if (block.unwatched < kWatchEvery) return false;
  block.unwatched = 0;
  return processor_ns() > block.grid->processor_deadline;
}

// Adds what the warp executed to the total; ends the launch at its limit.
void account(WarpRun& w) {
  GridRun& grid = *w.block->grid;
  const std::uint64_t executed = w.instructions - w.accounted;
  w.accounted = w.instructions;
  BlockRun& block = *w.block;
  block.instructions += executed;
  block.last_pc = w.pc;
  block.last_thread = w.index * kWarpSize;
  const std::uint64_t total =
      grid.limit_by_block ? block.instructions : grid.instructions += executed;
  if (total > grid.instruction_limit) {
    fail(w, FindingKind::instruction_limit, static_cast<std::uint32_t>(std::countr_zero(w.active)),
         kLimitText);
  }
  if (past_deadline(block, executed)) {
    fail(w, FindingKind::instruction_limit, static_cast<std::uint32_t>(std::countr_zero(w.active)),
         kDeadlineText);
  }
}

// Runs all of the block's handlers for the lanes of `mask`.
inline void run_handlers(WarpRun& w, const Code& code, const Block& block, std::uint32_t mask) {
  const Instr* in = code.code.data() + block.begin;
  if (w.tainted) [[unlikely]]
    return run_tainted(w, code, block, in, mask);
  w.block_end = code.code.data() + block.end;
  w.set_active(mask);
  w.pc = code.first_pc + block.begin;
  for (; in < w.block_end; ++in, ++w.pc) {
    if (in->guard >= 0) {
      const std::uint32_t active = guarded(w, *in, mask);
      if (active == 0) continue;
      w.set_active(active);
      in->run(w, *in);
      w.set_active(mask);
    } else {
      in->run(w, *in);
    }
  }
  if (w.block_end == nullptr) [[unlikely]]
    run_after_undefined(w, code, block, in[-1], mask);
}

void branch_indexed(WarpRun& w, Fragment& f, const Code& code, const Instr& in) {
  const std::uint32_t targets = code.extra[in.aux];
  const std::uint32_t taken = guarded(w, in, f.mask);
  const std::uint32_t here = f.block;
  if (taken != f.mask) split_off(w, f, f.mask & ~taken, here + 1);
  for (bool last = taken == 0; !last;) {
    const Lanes32& index = w.r32(in.a);
    const auto lane = static_cast<unsigned>(std::countr_zero(f.mask));
    const std::uint32_t at = index.v[lane];
    if (at >= targets) {
      fail(w, FindingKind::out_of_bounds, lane, "brx.idx: the index exceeds the table of targets");
    }
    std::uint32_t same = 0;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      same |= static_cast<std::uint32_t>(index.v[l] == at) << l;
    }
    last = (f.mask & ~same) == 0;
    if (last) {
      f.block = code.extra[in.aux + 1 + at];
    } else {
      split_off(w, f, f.mask & same, code.extra[in.aux + 1 + at]);
    }
  }
  if (taken == 0) f.block = here + 1;
}

bool pass_cluster_barrier(WarpRun& w, Fragment& f, const Instr& in) {
  ClusterRun& cluster = *w.block->cluster;
  if (BarrierOp::decode(in.imm).kind == BarrierOp::Kind::cluster_arrive) {
    cluster.arrive(w, f.mask);
  } else if (!cluster.wait(w, f)) {
    return false;
  }
  ++f.block;
  return true;
}

// Splits lanes that name different barriers; those that have not arrived execute the instruction
// later.
bool arrive_at_barrier(WarpRun& w, Fragment& f, const Instr& in) {
  const std::uint32_t lanes = guarded(w, in, f.mask);
  if (lanes == 0) {
    ++f.block;
    return true;
  }
  if (lanes != f.mask) split_off(w, f, f.mask & ~lanes, f.block + 1);
  const BarrierOp op = BarrierOp::decode(in.imm);
  if (op.of_cluster()) return pass_cluster_barrier(w, f, in);
  if (op.kind == BarrierOp::Kind::warpgroup)
    return w.block->barriers.arrive_in_warpgroup(*w.block, w, f, op.pending);
  const Lanes32& id = w.r32(in.a);
  const std::uint32_t first = id.v[std::countr_zero(f.mask)];
  std::uint32_t others = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    others |= static_cast<std::uint32_t>(id.v[l] != first) << l;
  }
  if ((f.mask & others) != 0) split_off(w, f, f.mask & others, f.block);
  w.set_active(f.mask);
  if (first >= kBarriers) {
    fail(w, FindingKind::trap, static_cast<std::uint32_t>(std::countr_zero(f.mask)),
         "a barrier number above 15");
  }
  return w.block->barriers.arrive(*w.block, w, f, in);
}

// Runs `f` until it waits, ends or yields, or until another fragment or warp is due.
void run_fragment(WarpRun& w, Fragment& f) {
  BlockCounts& counts = w.block->counts;
  const Code* code = nullptr;
  std::uint64_t *executions = nullptr, *lanes = nullptr;
  do {
    if (w.frame != f.frame || f.frame->code != code) {
      w.enter_frame(f.frame);
      code = f.frame->code;
      executions = counts.executions.data() + code->first_block;
      lanes = counts.lanes.data() + code->first_block;
    }
    const Block& block = code->blocks[f.block];
    if (block.rendezvous && !f.passed && !meet(w, f, block)) return;
    f.passed = false;
    ++executions[f.block];
    lanes[f.block] += static_cast<std::uint64_t>(std::popcount(f.mask));
    w.clock_base = w.instructions - (code->first_pc + block.begin);
    w.instructions += block.instructions;
    w.slice -= block.instructions;
    run_handlers(w, *code, block, f.mask);

    const Instr* const last = code->code.data() + block.end;  // the terminator, if there is one
    switch (block.flow) {
      case Flow::next: ++f.block; break;
      case Flow::poll:
        ++f.block;
        if (++f.polls >= kPollsPerTurn) {
          f.polls = 0;
          f.yielded = true;
          return;
        }
        break;
      case Flow::branch: {
        const std::uint32_t taken = guarded(w, *last, f.mask);
        if (taken == f.mask) {
          f.block = last->aux;
        } else if (taken == 0) {
          ++f.block;
        } else {
          diverge(w, f, taken, last->aux, f.block + 1);
        }
        break;
      }
      case Flow::branch_indexed: branch_indexed(w, f, *code, *last); break;
      case Flow::call:
      case Flow::call_indirect: call_function(w, f, *last); break;
      case Flow::ret:
        if (return_lanes(w, f, guarded(w, *last, f.mask))) return;
        break;
      case Flow::exit: {
        const std::uint32_t leaving = guarded(w, *last, f.mask);
        if (leaving != 0 && exit_lanes(w, f, leaving)) return;
        ++f.block;
        break;
      }
      case Flow::barrier:
        w.pc = code->first_pc + block.end;
        if (!arrive_at_barrier(w, f, *last)) return;
        break;
    }
  } while (w.slice >= 0 && f.key() < w.limit);
}

// Whether some fragment had yielded; clears all yields.
bool clear_yields(WarpRun& w) {
  bool any = false;
  for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
    any |= w.fragments[i].yielded;
    w.fragments[i].yielded = false;
  }
  return any;
}

bool any_yielded(const WarpRun& w) {
  for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
    if (w.fragments[i].yielded) return true;
  }
  return false;
}

Progress run_slices(WarpRun& w) {
  bool ran = false, yielded = false;
  w.slice = kLongSlice;
  for (;;) {
    Fragment* f = select_fragment(w);
    if (f == nullptr) {
      if (w.fragment_count == 0) return Progress::finished;
      if (resolve_meetings(w)) continue;
      if (clear_yields(w)) return Progress::polling;
      return ran ? Progress::blocked : Progress::idle;
    }
    ran = true;
    run_fragment(w, *f);
    if (w.slice < 0) {
      // At the end of a short slice, fragments that yielded try again. At the end of a long one,
      // the others go first.
      account(w);
      if (yielded) {
        clear_yields(w);
        yielded = false;
      } else if (w.fragment_count > 1) {
        f->yielded = true;
      } else {
        return Progress::running;
      }
      w.slice = kLongSlice;
    }
    if (!yielded && any_yielded(w)) {
      w.slice = kShortSlice;
      yielded = true;
    }
  }
}

}  // namespace

Progress run_warp(WarpRun& w) {
  const Progress progress = run_slices(w);
  account(w);
  return progress;
}

Progress run_block(BlockRun& block, std::uint32_t patience) {
  for (std::uint32_t stuck = 0;;) {
    bool alive = false, ran = false, progressed = false;
    for (const std::uint32_t i : block.order) {
      WarpRun& w = block.warps[i];
      if (w.fragment_count == 0) continue;
      const Progress p = run_warp(w);
      alive |= p != Progress::finished;
      ran |= p != Progress::idle;
      progressed |= p != Progress::idle && p != Progress::polling;
    }
    if (!alive) {
      block.bulk.finish(block);
      return Progress::finished;
    }
    if (!ran) {
      if (block.cluster == nullptr || !block.cluster->others_may_go_on()) report_deadlock(block);
      return Progress::blocked;
    }
    if (block.cluster != nullptr) block.cluster->went_on();
    stuck = progressed ? 0 : stuck + 1;
    if (stuck >= patience) return Progress::polling;
  }
}

}  // namespace assay::sim
