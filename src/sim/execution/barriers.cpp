#include "sim/execution/barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sim/execution/block_run.h"

namespace assay::sim {
namespace {

using Kind = BarrierOp::Kind;

bool waits_at(const Fragment& f, unsigned id) {
  return f.state == Fragment::State::at_barrier && f.barrier == id;
}

const Instr& instruction_of(const Fragment& f) {
  const Code& code = *f.frame->code;
  return code.code[code.blocks[f.block].end];
}

// .red: every thread gets the same result.
void write_result(const Fragment& f, const Barrier& b) {
  const Instr& in = instruction_of(f);
  const Kind kind = BarrierOp::decode(in.imm).kind;
  if (kind == Kind::popc) {
    auto& d = *reinterpret_cast<Lanes32*>(f.frame->regs.data() + in.d);
    for (unsigned l = 0; l < kLanes; ++l) {
      if ((f.mask >> l) & 1u) d.v[l] = b.true_threads;
    }
  } else if (kind == Kind::all || kind == Kind::any) {
    const bool result = kind == Kind::all ? b.false_threads == 0 : b.true_threads != 0;
    std::uint32_t& d = f.frame->preds[in.d];
    d = result ? d | f.mask : d & ~f.mask;
  }
}

RawFinding finding_at(const BlockRun& block, const WarpRun& w, const Fragment& f) {
  RawFinding finding;
  finding.kind = FindingKind::barrier_divergence;
  finding.pc = f.frame->code->first_pc + f.frame->code->blocks[f.block].end;
  finding.block = block.index;
  finding.thread = w.index * kWarpSize + static_cast<std::uint32_t>(std::countr_zero(f.mask));
  finding.other_pc = finding.pc;
  return finding;
}

// All threads of a warp that have not exited must wait at the same aligned instruction.
void report_divergence(BlockRun& block, const Barrier& b, unsigned id) {
  for (const WarpRun& w : block.warps) {
    const Fragment* first = nullptr;
    for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
      const Fragment& f = w.fragments[i];
      if (!waits_at(f, id)) continue;
      if (first == nullptr) {
        first = &f;
      } else if (b.aligned && !f.same_place(*first)) {
        RawFinding finding = finding_at(block, w, f);
        const RawFinding other = finding_at(block, w, *first);
        finding.other_pc = other.pc;
        finding.other_thread = other.thread;
        block.checker.report(finding);
      }
    }
  }
}

}  // namespace

bool Barriers::arrive(BlockRun& block, WarpRun& w, Fragment& f, const Instr& in) {
  const BarrierOp op = BarrierOp::decode(in.imm);
  const auto lane = static_cast<unsigned>(std::countr_zero(f.mask));
  const std::uint32_t id = w.r32(in.a).v[lane];
  Barrier& b = barriers_[id];
  in_use_ |= 1u << id;
  b.aligned |= op.aligned;
  if (op.counted) {
    b.expected = w.r32(in.b).v[lane];
    if (b.expected == 0 || b.expected % kWarpSize != 0) {
      fail(w, FindingKind::trap, lane,
           fmt::format("the barrier's {} threads are no multiple of the warp size", b.expected));
    }
  }
  if (op.kind != Kind::sync && op.kind != Kind::arrive) {
    const std::uint32_t p = w.preds[op.counted ? in.c : in.b];
    const auto trues = static_cast<std::uint32_t>(std::popcount(p & f.mask));
    b.true_threads += trues;
    b.false_threads += static_cast<std::uint32_t>(std::popcount(f.mask)) - trues;
  }
  join(w, f.mask, b);
  if (op.kind == Kind::arrive) {
    block.checker.arrive(w.index, id);
    ++f.block;
    if (is_complete(block, b)) complete(block, id);
    return true;
  }
  return wait(block, f, id);
}

bool Barriers::arrive_in_warpgroup(BlockRun& block, WarpRun& w, Fragment& f,
                                   std::uint32_t pending) {
  w.products.wait(pending, [&](const SharedRead& r) {
    std::array<std::uint64_t, kLanes> address{};
    std::copy(r.offset.begin(), r.offset.end(), address.begin());
    block.checker.shared_again(
        {AccessKind::load, kBulkPiece, r.mask, address.data(), nullptr, r.pc, w.index});
  });
  const unsigned id = kFirstWarpgroup + w.index / kWarpgroup;
  Barrier& b = barriers_[id];
  in_use_ |= 1u << id;
  b.aligned = true;
  b.members = ((1u << kWarpgroup) - 1) << (w.index / kWarpgroup * kWarpgroup);
  join(w, f.mask, b);
  return wait(block, f, id);
}

void Barriers::join(WarpRun& w, std::uint32_t lanes, Barrier& b) {
  b.warps |= 1u << w.index;
  b.arrived[w.index] |= lanes;
  if ((w.live & ~b.arrived[w.index]) != 0) return;
  b.threads += kWarpSize;
  b.complete |= 1u << w.index;
  b.arrived[w.index] = 0;
}

bool Barriers::wait(BlockRun& block, Fragment& f, unsigned id) {
  f.state = Fragment::State::at_barrier;
  f.barrier = static_cast<std::uint8_t>(id);
  if (!is_complete(block, barriers_[id])) return false;
  complete(block, id);
  return true;
}

void Barriers::lanes_exited(BlockRun& block) {
  for (std::uint32_t rest = in_use_; rest != 0; rest &= rest - 1) {
    const auto id = static_cast<unsigned>(std::countr_zero(rest));
    Barrier& b = barriers_[id];
    for (WarpRun& w : block.warps) {
      std::uint32_t& arrived = b.arrived[w.index];
      if (arrived == 0 || (w.live & ~arrived) != 0) continue;
      b.threads += kWarpSize;
      b.complete |= 1u << w.index;
      arrived = 0;
    }
    if (is_complete(block, b)) complete(block, id);
  }
}

bool Barriers::is_complete(const BlockRun& block, const Barrier& b) const {
  if (b.expected != 0) {
    std::uint32_t threads = b.threads;
    for (const std::uint32_t lanes : b.arrived) {
      threads += static_cast<std::uint32_t>(std::popcount(lanes));
    }
    return threads >= b.expected;
  }
  for (const WarpRun& w : block.warps) {
    const bool takes_part = w.live != 0 && ((b.members >> w.index) & 1u) != 0;
    if (takes_part && ((b.complete >> w.index) & 1u) == 0) return false;
  }
  return true;
}

void Barriers::complete(BlockRun& block, unsigned id) {
  Barrier& b = barriers_[id];
  report_divergence(block, b, id);
  std::uint32_t waited = 0;
  for (WarpRun& w : block.warps) {
    for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
      Fragment& f = w.fragments[i];
      if (!waits_at(f, id)) continue;
      write_result(f, b);
      f.state = Fragment::State::ready;
      ++f.block;
      waited |= 1u << w.index;
    }
    w.limit = 0;  // makes the executing fragment look up: others may be ready now
  }
  if (waited != 0) {
    block.checker.barrier(waited, id);
    if (id < kBarriers) ++block.counters->barriers;
  }
  b = Barrier{};
  in_use_ &= ~(1u << id);
}

}  // namespace assay::sim
