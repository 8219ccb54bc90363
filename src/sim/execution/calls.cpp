#include "sim/execution/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/execution/definedness.h"
#include "sim/execution/fragments.h"
#include "sim/execution/special.h"

namespace assay::sim {
namespace {

// 32-bit rows of the lanes in `mask` from one frame to another.
void copy_rows(std::byte* to, const std::byte* from, std::uint32_t words, std::uint32_t mask) {
  for (std::uint32_t w = 0; w < words; ++w) {
    auto& d = reinterpret_cast<Lanes32*>(to)[w];
    const auto& s = reinterpret_cast<const Lanes32*>(from)[w];
    for (unsigned l = 0; l < kLanes; ++l) {
      const std::uint32_t take = 0u - ((mask >> l) & 1u);
      d.v[l] = (s.v[l] & take) | (d.v[l] & ~take);
    }
  }
}

// The frame in which other lanes are executing this very call. Lanes that reach the call one after
// the other must meet in the callee, where they may wait for each other. A lane that has been in a
// frame gets another, since its registers there may hold undefined bits.
Frame* frame_to_join(WarpRun& w, const Frame& parent, const Instr& call, const Code& code,
                     std::uint32_t lanes) {
  const auto found = std::ranges::find_if(w.frames, [&](const auto& f) {
    return f->lanes != 0 && f->parent == &parent && f->call == &call && f->code == &code &&
           (f->entered & lanes) == 0;
  });
  return found == w.frames.end() ? nullptr : found->get();
}

Frame& frame_for(WarpRun& w, const Code& code) {
  const auto known = std::find_if(w.free_frames.rbegin(), w.free_frames.rend(),
                                  [&](const Frame* f) { return f->code == &code; });
  if (known != w.free_frames.rend()) {
    Frame* const frame = *known;
    w.free_frames.erase(std::next(known).base());
    if (w.tainted) clear_shadow(*frame);
    return *frame;
  }
  w.frames.push_back(std::make_unique<Frame>());
  Frame& frame = *w.frames.back();
  frame.code = &code;
  frame.regs.grow(code.frame_bytes);
  frame.preds.resize(code.predicates);
  fill_constants(code, frame.regs.data(), frame.preds.data());
  if (w.tainted) clear_shadow(frame);
  return frame;
}

void push_local(WarpRun& w, Frame& frame, std::uint32_t lanes) {
  const Frame& parent = *frame.parent;
  const std::uint32_t align = frame.code->local_align;  // a power of two
  frame.local_base = (parent.local_base + parent.code->local_bytes + align - 1) & ~(align - 1);
  const std::uint32_t top = frame.local_base + frame.code->local_bytes;
  // On hardware, the registers of callers that wait for a return lie in local memory.
  frame.saved_bytes = parent.saved_bytes + parent.code->frame_bytes / kLanes;
  if (top + frame.saved_bytes > kMaxLocalBytes || frame.depth > kMaxCallDepth) {
    fail(w, FindingKind::out_of_bounds, static_cast<std::uint32_t>(std::countr_zero(lanes)),
         fmt::format("the call stack exceeds {} calls or {} KiB of local memory", kMaxCallDepth,
                     kMaxLocalBytes >> 10));
  }
  const std::size_t bytes = std::size_t{top} * kLanes;
  if (bytes > w.local.size()) w.local.grow(std::max(bytes, 2 * w.local.size()));
  if (top > w.local_bytes) {
    w.local_bytes = top;
    std::atomic<std::uint32_t>& most = w.block->grid->local_bytes;
    for (std::uint32_t known = most; known < top && !most.compare_exchange_weak(known, top);) {
    }
  }
  // Other lanes' stacks may be in between, so only these lanes' words become undefined.
  for (std::uint32_t word = frame.local_base / 4; word < (top + 3) / 4; ++word) {
    auto& row = reinterpret_cast<Lanes32*>(w.local.data())[word];
    for (unsigned l = 0; l < kLanes; ++l) row.v[l] |= 0u - ((lanes >> l) & 1u);
  }
  for (std::size_t b = frame.local_base; b < std::min<std::size_t>(top, w.local_undefined.size());
       ++b) {
    w.local_undefined[b] &= ~lanes;
  }
}

// The lanes that call the same function as the first; the others split off and execute the call
// again.
const Code* indirect_callee(WarpRun& w, Fragment& f, const Instr& in) {
  const Lanes64& address = w.r64(in.a);
  const auto first = static_cast<unsigned>(std::countr_zero(f.mask));
  std::uint32_t others = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    others |= static_cast<std::uint32_t>(address.v[l] != address.v[first]) << l;
  }
  if ((f.mask & others) != 0) split_off(w, f, f.mask & others, f.block);
  const auto& functions = w.block->grid->program->by_address;
  const auto found = functions.find(address.v[first]);
  if (found == functions.end()) {
    fail(w, FindingKind::trap, first,
         fmt::format("calls {:#x}, which is no function", address.v[first]));
  }
  return found->second;
}

}  // namespace

void call_function(WarpRun& w, Fragment& f, const Instr& in) {
  const Program& program = *w.block->grid->program;
  const std::uint32_t lanes = guarded(w, in, f.mask);
  if (lanes == 0) {
    ++f.block;
    return;
  }
  if (lanes != f.mask) split_off(w, f, f.mask & ~lanes, f.block + 1);
  const Code& caller = *f.frame->code;
  const Code* callee = caller.blocks[f.block].flow == Flow::call_indirect
                           ? indirect_callee(w, f, in)
                           : program.codes[caller.extra[in.aux]].get();
  const std::uint32_t* site = caller.extra.data() + in.aux + 1;
  if (site[0] != callee->parameters.size() || site[1 + site[0]] != callee->results.size()) {
    fail(w, FindingKind::trap, static_cast<std::uint32_t>(std::countr_zero(lanes)),
         fmt::format("calls {} with other parameters than it has", callee->name));
  }
  Frame* parent = f.frame;
  Frame* const joined = frame_to_join(w, *parent, in, *callee, f.mask);
  Frame& frame = joined != nullptr ? *joined : frame_for(w, *callee);
  if (joined == nullptr) {
    frame.parent = parent;
    frame.call = &in;
    frame.return_block = f.block + 1;
    frame.depth = parent->depth + 1;
    frame.lanes = frame.entered = 0;
  }
  frame.lanes |= f.mask;
  frame.entered |= f.mask;
  push_local(w, frame, f.mask);
  for (std::size_t i = 0; i < callee->parameters.size(); ++i) {
    const ParamRows& p = callee->parameters[i];
    copy_rows(frame.regs.data() + p.offset, parent->regs.data() + site[1 + i], p.words, f.mask);
    if (!w.tainted) continue;
    copy_rows(frame.shadow->bits.data() + p.offset, parent->shadow->bits.data() + site[1 + i],
              p.words, f.mask);
  }
  w.enter_frame(&frame);
  fill_specials(w, *callee, joined == nullptr ? ~0u : f.mask);
  f.frame = &frame;
  f.block = 0;
}

bool return_lanes(WarpRun& w, Fragment& f, std::uint32_t lanes) {
  if (lanes == 0) {
    ++f.block;
    return false;
  }
  Frame& frame = *f.frame;
  if (frame.parent == nullptr) {
    if (exit_lanes(w, f, lanes)) return true;
    ++f.block;
    return false;
  }
  if (lanes != f.mask) split_off(w, f, f.mask & ~lanes, f.block + 1);
  const Code& callee = *frame.code;
  const std::uint32_t* site = frame.parent->code->extra.data() + frame.call->aux + 1;
  const std::uint32_t* results = site + 1 + site[0] + 1;
  for (std::size_t i = 0; i < callee.results.size(); ++i) {
    const ParamRows& r = callee.results[i];
    copy_rows(frame.parent->regs.data() + results[i], frame.regs.data() + r.offset, r.words, lanes);
    if (!w.tainted) continue;
    copy_rows(frame.parent->shadow->bits.data() + results[i], frame.shadow->bits.data() + r.offset,
              r.words, lanes);
  }
  f.frame = frame.parent;
  f.block = frame.return_block;
  leave_frame(w, frame, lanes);
  return false;
}

}  // namespace assay::sim
