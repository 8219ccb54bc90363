// trap, fences, clocks, and instructions that only advise the hardware.
#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "sim/execution/block_run.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/lane_ops.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {
namespace {

void nothing(Warp&, const Instr&) {}

void trap(Warp& w, const Instr&) {
  fail(w, FindingKind::trap, static_cast<std::uint32_t>(std::countr_zero(w.active)),
       "executes a trap");
}

void fence_in_block(Warp& w, const Instr&) { w.block->checker.fence_block(run_of(w).index); }
void fence_beyond_block(Warp& w, const Instr& in) {
  fence_in_block(w, in);
  w.block->checker.fence();
}

void zero64(Warp& w, const Instr& in) {
  each64(w, in.d, [](unsigned) { return std::uint64_t{0}; });
}

// Time is the number of instructions that the warp has begun.
std::uint64_t clock_of(const Warp& w) { return static_cast<const WarpRun&>(w).clock_base + w.pc; }
void clock_low(Warp& w, const Instr& in) {
  const auto now = static_cast<std::uint32_t>(clock_of(w));
  each32(w, in.d, [&](unsigned) { return now; });
}
void clock_high(Warp& w, const Instr& in) {
  const auto now = static_cast<std::uint32_t>(clock_of(w) >> 32);
  each32(w, in.d, [&](unsigned) { return now; });
}
void clock_wide(Warp& w, const Instr& in) {
  const std::uint64_t now = clock_of(w);
  each64(w, in.d, [&](unsigned) { return now; });
}

// These have no visible effect in a functional model.
constexpr std::array<std::string_view, 8> kAdvice{"prefetch",   "prefetchu", "griddepcontrol",
                                                  "setmaxnreg", "discard",   "applypriority",
                                                  "pmevent",    "nanosleep"};

Handler fence_handler(const ptx::Instruction& in) {
  if (has_prefix(in, "proxy")) {
    if (has_prefix(in, "proxy::tensormap")) throw_unsupported(in);
    return nothing;
  }
  if (has(in, "mbarrier_init")) return nothing;
  if (has(in, "cta")) return fence_in_block;
  return fence_beyond_block;
}

}  // namespace

std::optional<FlowSelection> select_control(const ptx::Instruction& in) {
  FlowSelection s;
  s.cls = InstrClass::control;
  s.operands.assign(in.operands.size(), OperandForm::ignored);
  if (in.opcode == "trap" || in.opcode == "brkpt") {
    s.run = trap;
  } else if (in.opcode == "membar" || in.opcode == "fence") {
    s.run = fence_handler(in);
    s.cls = InstrClass::memory;
  } else if (in.opcode == "createpolicy") {
    if (s.operands.empty()) throw_unsupported(in);
    s.run = zero64;
    s.operands[0] = OperandForm::dst64;
    s.cls = InstrClass::other;
  } else if (std::find(kAdvice.begin(), kAdvice.end(), in.opcode) != kAdvice.end()) {
    s.run = nothing;
    s.cls = InstrClass::other;
    if (in.opcode == "nanosleep") s.flow = Flow::poll;
  } else {
    return std::nullopt;
  }
  return s;
}

bool is_wide_clock(const std::string& special) {
  return special == "%clock64" || special == "%globaltimer";
}

Handler clock_handler(const std::string& special) {
  if (is_wide_clock(special)) return clock_wide;
  return special == "%clock_hi" || special == "%globaltimer_hi" ? clock_high : clock_low;
}

}  // namespace assay::sim
