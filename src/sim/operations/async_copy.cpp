// cp.async in all its forms but .bulk: see sim/execution/async_copies.h.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "sim/execution/async_copies.h"
#include "sim/execution/memory_path.h"
#include "sim/memory/lane_pattern.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/mbarrier.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Space;

namespace {

// Instr::e of a copy: bytes, then these.
constexpr std::uint32_t kNarrow = 1u << 8, kSourceBytes = 1u << 9, kIgnoreSource = 1u << 10;

// The number of bytes that each lane reads; the rest of its destination becomes zero.
void source_bytes(Warp& w, const Instr& in, std::uint32_t bytes,
                  std::array<std::uint32_t, kLanes>& n) {
  n.fill(bytes);
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    if ((in.e & kSourceBytes) != 0) n[l] = std::min(bytes, w.r32(in.c).v[l]);
    if ((in.e & kIgnoreSource) != 0 && ((w.preds[in.c] >> l) & 1u) != 0) n[l] = 0;
  }
}

// a: destination in shared memory, b: source in global memory
void copy_async(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const Instr* const block_end = w.block_end;
  AsyncCopies::Copy copy;
  copy.bytes = in.e & 0xffu;
  copy.mask = w.active;
  copy.pc = w.pc;
  copy.data.fill(std::byte{0});
  Lanes64 to;
  lane_addresses(w, in.a, in.imm, (in.e & kNarrow) != 0, to);
  std::copy(std::begin(to.v), std::end(to.v), copy.to.begin());
  const Lanes64 from = w.r64(in.b);

  std::array<std::uint32_t, kLanes> n;
  source_bytes(w, in, copy.bytes, n);
  std::uint32_t whole = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    whole |= static_cast<std::uint32_t>(n[l] == copy.bytes) << l;
  }
  whole &= w.active;
  if (whole != 0) {
    const auto load = copy.bytes == 16  ? load_lanes<16>
                      : copy.bytes == 8 ? load_lanes<8>
                                        : load_lanes<4>;
    load(w, Space::global, from.v, whole, AccessKind::load, copy.data.data());
    if (w.seen_undefined != 0) {
      copy.partly_undefined = true;
      copy.undefined.fill(std::byte{0});
      w.replaying = true;
      load(w, Space::global, from.v, whole, AccessKind::load, copy.undefined.data());
      w.replaying = false;
    }
  }
  w.seen_undefined = 0;
  // Partial reads: byte by byte.
  for (std::uint32_t at = 0; at < copy.bytes; ++at) {
    std::uint32_t part = 0;
    Lanes64 address;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      address.v[l] = from.v[l] + at;
      part |= static_cast<std::uint32_t>(at < n[l]) << l;
    }
    part &= w.active & ~whole;
    if (part == 0) break;
    std::array<std::byte, kLanes> bytes;
    load_lanes<1>(w, Space::global, address.v, part, AccessKind::load, bytes.data());
    const std::uint32_t undefined = std::exchange(w.seen_undefined, 0) & part;
    if (undefined != 0 && !std::exchange(copy.partly_undefined, true))
      copy.undefined.fill(std::byte{0});
    for_lanes(undefined,
              [&](unsigned l) { copy.undefined[l * copy.bytes + at] = std::byte{0xff}; });
    for (std::uint32_t rest = part; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(rest));
      copy.data[l * copy.bytes + at] = bytes[l];
    }
  }
  // No register holds the data; if only some bytes are copied, the others are zero.
  w.seen_undefined = 0;
  w.block_end = block_end;
  w.block->checker.shared_store_ahead(WarpAccess{AccessKind::store, copy.bytes, copy.mask,
                                                 copy.to.data(), copy.data.data(), copy.pc,
                                                 w.index});
  w.async.issue(copy);
}

void commit_group(Warp& w, const Instr&) { run_of(w).async.commit(w.active); }
void wait_group(Warp& w, const Instr& in) {
  run_of(w).async.wait(run_of(w), w.active, static_cast<std::uint32_t>(in.imm), false);
}
void wait_all(Warp& w, const Instr&) { run_of(w).async.wait(run_of(w), w.active, 0, true); }

// Completes the copies when the arrival is made, which is allowed.
template <bool kIncrement>
void arrive_on_copies(Warp& w, const Instr& in) {
  run_of(w).async.wait(run_of(w), w.active, 0, true);
  arrive_after_copies(w, in.a, in.imm, in.e, kIncrement);
}

FlowSelection select_copy(const ptx::Instruction& in, const Names& names) {
  const bool policy = has(in, "L2::cache_hint");
  const std::size_t count = in.operands.size() - (policy ? 1 : 0);
  if (in.operands.size() < 3 || count < 3 || count > 4 || !has(in, "global")) throw_unsupported(in);
  const ptx::Operand& size = in.operands[2];
  const std::uint64_t bytes = size.value;
  if (size.kind != ptx::Operand::Kind::integer || (bytes != 4 && bytes != 8 && bytes != 16) ||
      (has(in, "cg") && bytes != 16)) {
    throw_unsupported(in, "this size");
  }
  FlowSelection s;
  const bool narrow = narrow_base(in.operands[0], names);
  s.run = copy_async;
  s.e = static_cast<std::uint32_t>(bytes) | (narrow ? kNarrow : 0);
  s.operands = {address_form(narrow), OperandForm::address64, OperandForm::ignored};
  if (count == 4) {
    const ptx::Operand& o = in.operands[3];
    const bool ignore =
        o.kind == ptx::Operand::Kind::reg && names.register_type(o.name) == ptx::Type::pred;
    s.operands.push_back(ignore ? OperandForm::src_pred : OperandForm::src32);
    s.e |= ignore ? kIgnoreSource : kSourceBytes;
  }
  if (policy) s.operands.push_back(OperandForm::ignored);
  return s;
}

}  // namespace

std::optional<FlowSelection> select_async(const ptx::Instruction& in, const Names& names) {
  if (in.opcode != "cp" || !has(in, "async") || has(in, "bulk")) return std::nullopt;
  if (has(in, "reduce")) throw_unsupported(in);
  FlowSelection s;
  if (has(in, "commit_group")) {
    s.run = commit_group;
  } else if (has(in, "wait_group") && in.operands.size() == 1) {
    s.run = wait_group;
    s.operands = {OperandForm::immediate};
  } else if (has(in, "wait_all")) {
    s.run = wait_all;
  } else if (has(in, "mbarrier") && in.operands.size() == 1) {
    MemoryFlags flags;
    flags.space = has_prefix(in, "shared") ? Space::shared : Space::generic;
    flags.narrow_address = narrow_base(in.operands[0], names);
    s.run = has(in, "noinc") ? arrive_on_copies<false> : arrive_on_copies<true>;
    s.operands = {address_form(flags.narrow_address)};
    s.e = flags.encode();
  } else if (has_prefix(in, "shared")) {
    s = select_copy(in, names);
  } else {
    throw_unsupported(in);
  }
  s.cls = InstrClass::memory;
  return s;
}

}  // namespace assay::sim
