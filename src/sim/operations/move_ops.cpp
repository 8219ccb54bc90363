// mov (registers, constants, addresses, packing and unpacking), cvta, isspacep, mapa and
// getctarank.
#include <array>

#include "sim/execution/cluster_run.h"
#include "sim/memory/lane_pattern.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/lane_ops.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Operand;
using ptx::Type;

namespace {

void move32(Warp& w, const Instr& in) { put32(w, in.d, w.r32(in.a).v); }
void move64(Warp& w, const Instr& in) { put64(w, in.d, w.r64(in.a).v); }
void move_pred(Warp& w, const Instr& in) { w.set_pred(in.d, w.preds[in.a]); }
void move128(Warp& w, const Instr& in) {
  put64(w, in.d, w.r64(in.a).v);
  put64(w, in.d + sizeof(Lanes64), w.r64(in.a + sizeof(Lanes64)).v);
}

// Elements in extra, the lowest first; kTotal and kPart are in bits. The whole is extra's first
// slot when it is written, its last when it is read. All elements are read before any is written,
// because a register may appear on both sides.
template <unsigned kTotal, unsigned kPart>
void pack(Warp& w, const Instr& in) {
  constexpr unsigned kParts = kTotal / kPart;
  const std::uint32_t* slots = w.extra + in.aux;
  std::uint64_t whole[kLanes] = {};
  for (unsigned p = 0; p < kParts; ++p) {
    const Lanes32& part = w.r32(slots[1 + p]);
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kPart) - 1;
    for (unsigned l = 0; l < kLanes; ++l) whole[l] |= (part.v[l] & kMask) << (p * kPart);
  }
  if constexpr (kTotal == 64) {
    put64(w, slots[0], whole);
  } else {
    each32(w, slots[0], [&](unsigned l) { return static_cast<std::uint32_t>(whole[l]); });
  }
}

template <unsigned kTotal, unsigned kPart>
void unpack(Warp& w, const Instr& in) {
  constexpr unsigned kParts = kTotal / kPart;
  const std::uint32_t* slots = w.extra + in.aux;
  std::uint64_t whole[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    whole[l] = kTotal == 64 ? w.r64(slots[kParts]).v[l] : w.r32(slots[kParts]).v[l];
  }
  for (unsigned p = 0; p < kParts; ++p) {
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kPart) - 1;
    each32(w, slots[p], [&](unsigned l) {
      return static_cast<std::uint32_t>((whole[l] >> (p * kPart)) & kMask);
    });
  }
}

void pack128(Warp& w, const Instr& in) {
  const std::uint32_t* slots = w.extra + in.aux;
  put64(w, slots[0], w.r64(slots[1]).v);
  put64(w, slots[0] + sizeof(Lanes64), w.r64(slots[2]).v);
}

void unpack128(Warp& w, const Instr& in) {
  const std::uint32_t* slots = w.extra + in.aux;
  put64(w, slots[0], w.r64(slots[2]).v);
  put64(w, slots[1], w.r64(slots[2] + sizeof(Lanes64)).v);
}

struct Packing {
  unsigned total, part;
  Handler pack, unpack;
};
constexpr std::array<Packing, 6> kPackings{{
    {64, 32, pack<64, 32>, unpack<64, 32>},
    {64, 16, pack<64, 16>, unpack<64, 16>},
    {64, 8, pack<64, 8>, unpack<64, 8>},
    {32, 16, pack<32, 16>, unpack<32, 16>},
    {32, 8, pack<32, 8>, unpack<32, 8>},
    {16, 8, pack<16, 8>, unpack<16, 8>},
}};

FlowSelection select_packing(const ptx::Instruction& in, const Operand& vector, bool packs) {
  FlowSelection s;
  const unsigned total = bits_of(last_type(in));
  const std::size_t parts = vector.elements.size();
  if (total == 128 && parts == 2) {
    s.run = packs ? pack128 : unpack128;
    s.operands = packs ? std::vector{OperandForm::dst128, OperandForm::src64_list}
                       : std::vector{OperandForm::dst64_list, OperandForm::src128};
    return s;
  }
  for (const Packing& p : kPackings) {
    if (p.total != total || p.total != p.part * parts) continue;
    s.run = packs ? p.pack : p.unpack;
    const OperandForm whole = total == 64 ? (packs ? OperandForm::dst64 : OperandForm::src64)
                                          : (packs ? OperandForm::dst32 : OperandForm::src32);
    s.operands = packs ? std::vector{whole, OperandForm::src32_list}
                       : std::vector{OperandForm::dst32_list, whole};
    return s;
  }
  throw_unsupported(in, "this packing");
}

FlowSelection select_mov(const ptx::Instruction& in) {
  if (in.operands.size() != 2) throw_unsupported(in);
  if (in.operands[1].kind == Operand::Kind::vector) return select_packing(in, in.operands[1], true);
  if (in.operands[0].kind == Operand::Kind::vector)
    return select_packing(in, in.operands[0], false);
  FlowSelection s;
  switch (bits_of(last_type(in))) {
    case 1:
      s.run = move_pred;
      s.operands = {OperandForm::dst_pred, OperandForm::src_pred};
      break;
    case 16:
    case 32:
      s.run = move32;
      s.operands = {OperandForm::dst32, OperandForm::src32};
      break;
    case 64:
      s.run = move64;
      s.operands = {OperandForm::dst64, OperandForm::src64};
      break;
    case 128:
      s.run = move128;
      s.operands = {OperandForm::dst128, OperandForm::src128};
      break;
    default: throw_unsupported(in);
  }
  return s;
}

// cvta: adds the start of the space in the generic address range, or subtracts it (.to).
FlowSelection select_cvta(const ptx::Instruction& in) {
  const bool to = has(in, "to");
  std::uint64_t base = 0;
  const auto is = [&](std::string_view space) { return has_prefix(in, space); };
  if (is("shared")) {
    base = kSharedRange.begin;
  } else if (is("local")) {
    base = kLocalRange.begin;
  } else if (is("param")) {
    base = kParamRange.begin;
  } else if (!is("global") && !is("const")) {
    throw_unsupported(in);
  }
  if (bits_of(last_type(in)) != 64) throw_unsupported(in, "32-bit generic addresses");
  FlowSelection s;
  s.imm = to ? 0 - base : base;
  s.run = add_imm64;
  s.operands = {OperandForm::dst64, OperandForm::src64};
  return s;
}

// mapa: the address of a in the shared memory of the block of rank b. Generic addresses are of 64
// bits, those in the shared window may be of either.
template <bool kGeneric, bool kWide>
void map_to_rank(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const std::uint64_t base = kGeneric ? kSharedRange.begin : 0;
  const auto mapped = [&](unsigned l) -> std::uint64_t {
    const std::uint64_t a = kWide ? w.r64(in.a).v[l] : w.r32(in.a).v[l];
    return base + (w.r32(in.b).v[l] + std::uint64_t{1}) * kClusterStride +
           (a - base) % kClusterStride;
  };
  for_lanes(w.active, [&](unsigned l) {
    if (w.r32(in.b).v[l] >= w.block->cluster->size()) no_such_block(w, l, mapped(l) - base);
  });
  if constexpr (kWide) {
    each64(w, in.d, mapped);
  } else {
    each32(w, in.d, [&](unsigned l) { return static_cast<std::uint32_t>(mapped(l)); });
  }
}

// getctarank: the rank of the block in whose shared memory a lies.
template <bool kGeneric, bool kWide>
void rank_of(Warp& w, const Instr& in) {
  each32(w, in.d, [&](unsigned l) {
    const std::uint64_t a = kWide ? w.r64(in.a).v[l] : w.r32(in.a).v[l];
    const std::uint64_t place = (a - (kGeneric ? kSharedRange.begin : 0)) / kClusterStride;
    return place == 0 ? w.block->rank : static_cast<std::uint32_t>(place - 1);
  });
}

FlowSelection select_in_cluster(const ptx::Instruction& in) {
  const bool generic = !has_prefix(in, "shared"), wide = bits_of(last_type(in)) == 64;
  if (generic && !wide) throw_unsupported(in, "32-bit generic addresses");
  FlowSelection s;
  s.operands = {OperandForm::dst32, wide ? OperandForm::src64 : OperandForm::src32};
  if (in.opcode == "mapa") {
    s.run = generic ? map_to_rank<true, true>
            : wide  ? map_to_rank<false, true>
                    : map_to_rank<false, false>;
    if (wide) s.operands[0] = OperandForm::dst64;
    s.operands.push_back(OperandForm::src32);
  } else {
    s.run = generic ? rank_of<true, true> : wide ? rank_of<false, true> : rank_of<false, false>;
  }
  s.uses_cluster = true;
  return s;
}

// d = the lanes whose generic address a is in the shared memory of the executing block.
void is_own_shared(Warp& w, const Instr& in) {
  const Lanes64& a = w.r64(in.a);
  const BlockRun& block = *w.block;
  std::uint32_t inside = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    const std::uint64_t place = (a.v[l] - kSharedRange.begin) / kClusterStride;
    const bool own = place == 0 || (block.cluster != nullptr && place == block.rank + 1);
    inside |= static_cast<std::uint32_t>(own) << l;
  }
  w.set_pred(in.d, inside);
}

// d = the lanes whose generic address a is in the range that e selects.
void is_space(Warp& w, const Instr& in) {
  constexpr AddressRange kRanges[] = {kGlobalRange, kSharedRange, kLocalRange, kParamRange};
  const AddressRange range = kRanges[in.e];
  const Lanes64& a = w.r64(in.a);
  std::uint32_t inside = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    inside |= static_cast<std::uint32_t>(range.contains(a.v[l])) << l;
  }
  w.set_pred(in.d, inside);
}

FlowSelection select_isspacep(const ptx::Instruction& in) {
  FlowSelection s;
  s.run = is_space;
  s.operands = {OperandForm::dst_pred, OperandForm::src64};
  if (has(in, "global")) {
    s.e = 0;
  } else if (has(in, "shared::cluster")) {
    s.e = 1;
  } else if (has_prefix(in, "shared")) {
    s.run = is_own_shared;
  } else if (has(in, "local")) {
    s.e = 2;
  } else if (has_prefix(in, "param")) {
    s.e = 3;
  } else {
    throw_unsupported(in);  // constants lie in the range of global addresses
  }
  return s;
}

}  // namespace

std::optional<FlowSelection> select_move(const ptx::Instruction& in, const Names&) {
  FlowSelection s;
  if (in.opcode == "mov") {
    s = select_mov(in);
  } else if (in.opcode == "cvta") {
    s = select_cvta(in);
  } else if (in.opcode == "isspacep") {
    s = select_isspacep(in);
  } else if (in.opcode == "mapa" || in.opcode == "getctarank") {
    s = select_in_cluster(in);
  } else {
    return std::nullopt;
  }
  s.cls = InstrClass::other;
  return s;
}

void narrow64(Warp& w, const Instr& in) {
  const Lanes64& a = w.r64(in.a);
  each32(w, in.d, [&](unsigned l) { return static_cast<std::uint32_t>(a.v[l] & in.imm); });
}

void widen_unsigned(Warp& w, const Instr& in) {
  const Lanes32& a = w.r32(in.a);
  each64(w, in.d, [&](unsigned l) { return a.v[l]; });
}

void widen_signed(Warp& w, const Instr& in) {
  const Lanes32& a = w.r32(in.a);
  each64(w, in.d, [&](unsigned l) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(a.v[l])));
  });
}

void add_imm32(Warp& w, const Instr& in) {
  const Lanes32& a = w.r32(in.a);
  each32(w, in.d, [&](unsigned l) { return a.v[l] + static_cast<std::uint32_t>(in.imm); });
}

void add_imm64(Warp& w, const Instr& in) {
  const Lanes64& a = w.r64(in.a);
  each64(w, in.d, [&](unsigned l) { return a.v[l] + in.imm; });
}

void complement(Warp& w, const Instr& in) { w.set_pred(in.d, ~w.preds[in.a]); }

void set_if_not_zero(Warp& w, const Instr& in) {
  const Lanes32& a = w.r32(in.a);
  std::uint32_t set = 0;
  for (unsigned l = 0; l < kLanes; ++l) set |= static_cast<std::uint32_t>(a.v[l] != 0) << l;
  w.set_pred(in.d, set);
}

}  // namespace assay::sim
