// cp.async.bulk, cp.reduce.async.bulk, st.async and red.async: see sim/execution/bulk_copies.h, and
// tensor_copy.cpp for copies of tensors.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>

#include "sim/execution/memory_path.h"
#include "sim/memory/lane_pattern.h"
#include "sim/operations/bulk_reductions.h"
#include "sim/operations/bulk_targets.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

namespace {

using ptx::Type;

// Instr::e
struct BulkFlags {
  bool narrow_to = false, narrow_from = false, narrow_object = false;  // addresses of 32 bits
  bool from_shared = false;
  bool multicast = false;
  bool generic = false;  // addresses in shared memory are generic
  unsigned values = 0;   // st.async, red.async: how many registers, of ...
  unsigned word_bytes = 0;
  unsigned reduction = 0;  // its number

  std::uint32_t encode() const {
    return (narrow_to ? 1u : 0u) | (narrow_from ? 2u : 0u) | (narrow_object ? 4u : 0u) |
           (from_shared ? 8u : 0u) | (multicast ? 16u : 0u) | (generic ? 32u : 0u) | (values << 8) |
           (word_bytes << 12) | (reduction << 16);
  }
  static BulkFlags decode(std::uint32_t e) {
    BulkFlags f;
    f.narrow_to = (e & 1) != 0;
    f.narrow_from = (e & 2) != 0;
    f.narrow_object = (e & 4) != 0;
    f.from_shared = (e & 8) != 0;
    f.multicast = (e & 16) != 0;
    f.generic = (e & 32) != 0;
    f.values = (e >> 8) & 15;
    f.word_bytes = (e >> 12) & 15;
    f.reduction = e >> 16;
    return f;
  }
  BulkReduction update() const { return reduction_of_number(reduction); }
};

BulkCopy copy_of(WarpRun& w, std::uint32_t lane, std::uint64_t from, std::uint64_t to,
                 std::uint32_t bytes, const BulkFlags& f) {
  if ((from | to | bytes) % kBulkPiece != 0) {
    fail(w, FindingKind::misaligned, lane,
         fmt::format("copies {} bytes from {:#x} to {:#x}, but addresses and size of a bulk copy "
                     "are multiples of {}",
                     bytes, from, to, kBulkPiece));
  }
  return {w.index, lane, w.pc, from, to, bytes, f.update(), nullptr};
}

// Extra: destination, source, bytes, the mbarrier, and for a multicast the blocks.
void load(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const BulkFlags f = BulkFlags::decode(in.e);
  const std::uint32_t* const slot = w.extra + in.aux;
  Lanes64 to, from, object;
  lane_addresses(w, slot[0], in.imm, f.narrow_to, to);
  lane_addresses(w, slot[1], 0, f.narrow_from, from);
  lane_addresses(w, slot[3], 0, f.narrow_object, object);
  for_lanes(w.active, [&](std::uint32_t l) {
    BlockRun& target = target_of(w, l, to.v[l], object.v[l]);
    const BulkCopy copy = copy_of(w, l, from.v[l], to.v[l], w.r32(slot[2]).v[l], f);
    if (copy.bytes == 0) return;
    if (f.multicast) return multicast(w, copy, object.v[l], w.r32(slot[4]).v[l]);
    send(w, target, copy, object.v[l], f.from_shared);
  });
}

// a: destination, b: source, c: bytes
void store(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const BulkFlags f = BulkFlags::decode(in.e);
  Lanes64 from, to;
  lane_addresses(w, in.b, 0, f.narrow_from, from);
  lane_addresses(w, in.a, in.imm, false, to);
  for_lanes(w.active, [&](std::uint32_t l) {
    w.block->bulk.store(*w.block, copy_of(w, l, from.v[l], to.v[l], w.r32(in.c).v[l], f));
  });
}

// The lane's registers, one after the other.
std::array<std::byte, kBulkPiece> values_of(WarpRun& w, const BulkFlags& f,
                                            const std::uint32_t* slot, std::uint32_t lane) {
  std::array<std::byte, kBulkPiece> bytes{};
  for (unsigned v = 0; v < f.values; ++v) {
    const std::uint64_t value = f.word_bytes == 8 ? w.r64(slot[v]).v[lane] : w.r32(slot[v]).v[lane];
    std::memcpy(bytes.data() + std::size_t{v} * f.word_bytes, &value, f.word_bytes);
  }
  return bytes;
}

// Extra: destination, values, the mbarrier.
void send_values(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const BulkFlags f = BulkFlags::decode(in.e);
  const std::uint32_t* const slot = w.extra + in.aux;
  Lanes64 to, object;
  lane_addresses(w, slot[0], in.imm, f.narrow_to, to);
  lane_addresses(w, slot[1 + f.values], 0, f.narrow_object, object);
  const std::uint32_t bytes = f.values * f.word_bytes;
  std::map<BlockRun*, std::size_t> tainted;  // copies to a block, the last first
  const auto one = [&](std::uint32_t l) {
    std::uint64_t at = to.v[l], counted = object.v[l];
    if (f.generic) {
      at -= kSharedRange.begin;
      counted -= kSharedRange.begin;
    }
    BlockRun& target = target_of(w, l, at, counted);
    const auto values = values_of(w, f, slot + 1, l);
    if (w.replaying) {
      std::uint16_t undefined = 0;
      for (std::uint32_t b = 0; b < bytes; ++b)
        undefined |= static_cast<std::uint16_t>(values[b] != std::byte{0} ? 1u << b : 0u);
      return target.bulk.taint(tainted[&target]++, undefined);
    }
    if (at % bytes != 0) {
      fail(w, FindingKind::misaligned, l,
           fmt::format("writes {} bytes to offset {} of shared memory, which is not aligned", bytes,
                       at));
    }
    const BulkCopy copy{w.index, l, w.pc, 0, at, bytes, f.update(), nullptr};
    BulkCopies::check_target(*w.block, target, copy);
    issue(*w.block, target, copy, counted, {{values.begin(), values.begin() + bytes}, {}});
  };
  if (!w.replaying) return for_lanes(w.active, one);
  for (std::uint32_t l = kLanes; l-- > 0;) {
    if (((w.active >> l) & 1u) != 0) one(l);
  }
}

void commit(Warp& warp, const Instr&) {
  auto& w = run_of(warp);
  w.block->bulk.commit(w.index, w.active);
}

void wait(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  w.block->bulk.wait(*w.block, w.index, w.active, static_cast<std::uint32_t>(in.imm));
}

void prefetch(Warp&, const Instr&) {}

// --- selection

// The reduction that the modifiers name.
std::uint32_t named_reduction(const ptx::Instruction& in, bool shared) {
  for (const std::string& m : in.modifiers) {
    if (const std::uint32_t number = number_of_reduction({m, last_type(in), shared}); number != 0)
      return number;
  }
  throw_unsupported(in);
}

FlowSelection select_load(const ptx::Instruction& in, const Names& names, BulkFlags f) {
  f.narrow_to = narrow_base(in.operands[0], names);
  f.narrow_from = f.from_shared && narrow_base(in.operands[1], names);
  f.narrow_object = narrow_base(in.operands[3], names);
  FlowSelection s;
  s.run = load;
  s.operands = {address_form(f.narrow_to), address_form(f.narrow_from), OperandForm::src32,
                address_form(f.narrow_object)};
  if (f.multicast) s.operands.push_back(OperandForm::src32);
  s.uses_extra = true;
  s.uses_cluster = f.multicast || f.from_shared;
  s.e = f.encode();
  return s;
}

FlowSelection select_store(const ptx::Instruction& in, const Names& names, BulkFlags f) {
  f.narrow_from = narrow_base(in.operands[1], names);
  FlowSelection s;
  s.run = store;
  s.operands = {OperandForm::address64, address_form(f.narrow_from), OperandForm::src32};
  s.ordered = !commutes(f.reduction);
  s.e = f.encode();
  return s;
}

FlowSelection select_copy(const ptx::Instruction& in, const Names& names) {
  const bool reduces = in.modifiers.front() == "reduce";
  if ((!reduces && in.modifiers.front() != "async") || has(in, "cp_mask")) throw_unsupported(in);
  const bool policy = has(in, "L2::cache_hint");
  const std::size_t count = in.operands.size() - (policy ? 1 : 0);
  const bool counted = has(in, "mbarrier::complete_tx::bytes"), global = has(in, "global");
  BulkFlags f;
  f.from_shared = !global;
  f.multicast = has(in, "multicast::cluster");
  if (reduces) f.reduction = named_reduction(in, !global);
  FlowSelection s;
  if (has(in, "commit_group")) {
    s.run = commit;
  } else if (has(in, "wait_group") && count == 1) {
    s.run = wait;
    s.operands = {OperandForm::immediate};
  } else if (has(in, "prefetch") && count == 2) {
    s.run = prefetch;
    s.operands = {OperandForm::address64, OperandForm::src32};
  } else if (counted && (global ? !reduces : has(in, "shared::cluster") && !f.multicast) &&
             count == (f.multicast ? 5u : 4u)) {
    s = select_load(in, names, f);
  } else if (global && has(in, "shared::cta") && has(in, "bulk_group") && count == 3) {
    s = select_store(in, names, f);
  } else {
    throw_unsupported(in);
  }
  if (policy) s.operands.push_back(OperandForm::ignored);
  return s;
}

// st.async, red.async
FlowSelection select_send(const ptx::Instruction& in, const Names& names) {
  const Type type = last_type(in);
  BulkFlags f;
  f.word_bytes = ptx::size_of(type);
  f.values = has(in, "v4") ? 4 : has(in, "v2") ? 2 : 1;
  if (in.opcode == "red") f.reduction = named_reduction(in, true);
  const bool words = f.word_bytes == 4 || f.word_bytes == 8;
  if (in.operands.size() != 3 || !words || f.values * f.word_bytes > kBulkPiece ||
      !has(in, "mbarrier::complete_tx::bytes") || has(in, "mmio") || has(in, "global"))
    throw_unsupported(in);
  f.generic = !has_prefix(in, "shared");
  f.narrow_to = narrow_base(in.operands[0], names);
  f.narrow_object = narrow_base(in.operands[2], names);
  const bool wide = f.word_bytes == 8;
  FlowSelection s;
  s.run = send_values;
  s.operands = {address_form(f.narrow_to),
                f.values > 1 ? (wide ? OperandForm::src64_list : OperandForm::src32_list)
                             : (wide ? OperandForm::src64 : OperandForm::src32),
                address_form(f.narrow_object)};
  s.uses_extra = true;
  s.uses_cluster = true;
  s.e = f.encode();
  return s;
}

}  // namespace

std::optional<FlowSelection> select_bulk(const ptx::Instruction& in, const Names& names) {
  const bool copies = in.opcode == "cp" && has(in, "bulk");
  const bool sends = (in.opcode == "st" || in.opcode == "red") && has(in, "async");
  if (!copies && !sends) return std::nullopt;
  FlowSelection s = copies ? select_copy(in, names) : select_send(in, names);
  s.cls = InstrClass::memory;
  return s;
}

}  // namespace assay::sim
