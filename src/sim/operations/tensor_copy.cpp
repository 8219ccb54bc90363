// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: copies between a box of a tensor in global
// memory and shared memory, where the box lies row by row (PTX ISA, "Tensors"). Boxes of images
// (.im2col) and of scattered rows are refused.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "sim/execution/memory_path.h"
#include "sim/memory/lane_pattern.h"
#include "sim/operations/bulk_reductions.h"
#include "sim/operations/bulk_targets.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/modifiers.h"
#include "sim/tensor_map.h"

namespace assay::sim {

namespace {

using ptx::Type;

// Of a box in shared memory, and of a tensor map.
constexpr std::uint64_t kBoxAlignment = 128, kMapAlignment = 64;

constexpr std::array<std::string_view, 8> kOperations{"add", "min", "max", "inc",
                                                      "dec", "and", "or",  "xor"};

// Instr::e
struct TensorFlags {
  unsigned dimensions = 1;
  bool narrow_shared = false, narrow_object = false;  // addresses of 32 bits
  bool multicast = false;
  unsigned operation = 0;  // 1 + its place in kOperations; 0: none

  std::uint32_t encode() const {
    return dimensions | (narrow_shared ? 8u : 0u) | (narrow_object ? 16u : 0u) |
           (multicast ? 32u : 0u) | (operation << 8);
  }
  static TensorFlags decode(std::uint32_t e) {
    return {e & 7, (e & 8) != 0, (e & 16) != 0, (e & 32) != 0, e >> 8};
  }
};

bool is_bitwise(std::string_view op) { return op == "and" || op == "or" || op == "xor"; }

// The words that an operation sees in elements of 4 and 8 bytes.
Type word_type(TensorMap::Element e, std::string_view op) {
  using enum TensorMap::Element;
  switch (e) {
    case u32: return is_bitwise(op) ? Type::b32 : Type::u32;
    case s32: return is_bitwise(op) ? Type::b32 : Type::s32;
    case u64: return is_bitwise(op) ? Type::b64 : Type::u64;
    case s64: return is_bitwise(op) ? Type::b64 : op == "add" ? Type::u64 : Type::s64;
    case f16: return Type::f16;
    case bf16: return Type::bf16;
    case f32: return Type::f32;
    case f64: return Type::f64;
    default: return Type::u8;
  }
}

BulkReduction reduction_of(WarpRun& w, std::uint32_t lane, const TensorMap& map,
                           unsigned operation) {
  if (operation == 0) return {};
  const std::string_view op = kOperations[operation - 1];
  const std::uint32_t number = number_of_reduction({op, word_type(map.element, op), false});
  if (number == 0) {
    fail(w, FindingKind::trap, lane,
         fmt::format("asks for {}, which there is not for the elements of this tensor", op));
  }
  return reduction_of_number(number);
}

TensorMap map_at(WarpRun& w, std::uint32_t lane, std::uint64_t address) {
  if (address % kMapAlignment != 0) {
    fail(w, FindingKind::misaligned, lane,
         fmt::format("names a tensor map at {:#x}, not a multiple of {}", address, kMapAlignment));
  }
  std::array<std::byte, sizeof(TensorMap)> bytes;
  std::array<std::byte, std::size_t{kLanes} * kBulkPiece> data;
  std::array<std::uint64_t, kLanes> addresses{};
  for (std::uint64_t at = 0; at < bytes.size(); at += kBulkPiece) {
    addresses[lane] = address + at;
    load_lanes<kBulkPiece>(w, ptx::Space::generic, addresses.data(), 1u << lane, AccessKind::load,
                           data.data());
    std::memcpy(bytes.data() + at, data.data() + std::size_t{lane} * kBulkPiece, kBulkPiece);
  }
  TensorMap map;
  std::memcpy(&map, bytes.data(), sizeof map);
  if (!map.sound()) fail(w, FindingKind::trap, lane, "names a tensor map where there is none");
  return map;
}

// `slot`: the tensor map, then the coordinates.
BulkCopy copy_of(WarpRun& w, std::uint32_t lane, const std::uint32_t* slot, std::uint64_t shared,
                 const TensorFlags& f) {
  TensorTile tile{map_at(w, lane, w.r64(slot[0]).v[lane])};
  if (tile.map.dimensions != f.dimensions) {
    fail(w, FindingKind::trap, lane,
         fmt::format("copies {} dimensions, but the tensor has {}", f.dimensions,
                     tile.map.dimensions));
  }
  if (shared % kBoxAlignment != 0) {
    fail(w, FindingKind::misaligned, lane,
         fmt::format("names offset {} of shared memory, but a tensor copy needs a multiple of {}",
                     shared, kBoxAlignment));
  }
  for (unsigned d = 0; d < f.dimensions; ++d)
    tile.at[d] = static_cast<std::int32_t>(w.r32(slot[1 + d]).v[lane]);
  const BulkReduction reduction = reduction_of(w, lane, tile.map, f.operation);
  const std::uint64_t bytes = tile.map.box_bytes();
  return {w.index, lane,  w.pc,      shared,
          shared,  bytes, reduction, std::make_shared<const TensorTile>(tile)};
}

// Extra: destination, the map and its coordinates, the mbarrier, and for a multicast the blocks.
void load(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const TensorFlags f = TensorFlags::decode(in.e);
  const std::uint32_t* const slot = w.extra + in.aux;
  const std::uint32_t* const after = slot + 2 + f.dimensions;
  Lanes64 to, object;
  lane_addresses(w, slot[0], in.imm, f.narrow_shared, to);
  lane_addresses(w, after[0], 0, f.narrow_object, object);
  for_lanes(w.active, [&](std::uint32_t l) {
    BlockRun& target = target_of(w, l, to.v[l], object.v[l]);
    const BulkCopy copy = copy_of(w, l, slot + 1, to.v[l], f);
    if (f.multicast) return multicast(w, copy, object.v[l], w.r32(after[1]).v[l]);
    send(w, target, copy, object.v[l], false);
  });
}

// Extra: the map and its coordinates, the source.
void store(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const TensorFlags f = TensorFlags::decode(in.e);
  const std::uint32_t* const slot = w.extra + in.aux;
  Lanes64 from;
  lane_addresses(w, slot[1 + f.dimensions], in.imm, f.narrow_shared, from);
  for_lanes(w.active, [&](std::uint32_t l) {
    w.block->bulk.store(*w.block, copy_of(w, l, slot, from.v[l], f));
  });
}

void prefetch(Warp&, const Instr&) {}

// --- selection

unsigned dimensions_of(const ptx::Instruction& in, ModifierSequence& modifiers) {
  for (unsigned d = 1; d <= kMostDimensions; ++d) {
    if (modifiers.take(fmt::format("{}d", d))) return d;
  }
  throw_unsupported(in);
}

void check_coordinates(const ptx::Instruction& in, std::size_t operand, unsigned dimensions) {
  const ptx::Operand& o = in.operands[operand];
  if (o.elements.size() != 2 || o.elements[1].elements.size() != dimensions) throw_unsupported(in);
}

// cp.async.bulk.tensor.dim.dst.src{.tile}.mbarrier...
//     [to], [map, at], [mbarrier] {, blocks} {, policy}
FlowSelection select_load(const ptx::Instruction& in, const Names& names, TensorFlags f,
                          ModifierSequence m) {
  m.need("global");
  m.take("tile");
  m.need("mbarrier::complete_tx::bytes");
  f.multicast = m.take("multicast::cluster");
  const bool policy = m.take("L2::cache_hint");
  m.end();
  if (in.operands.size() != 3u + (f.multicast ? 1 : 0) + (policy ? 1 : 0)) throw_unsupported(in);
  check_coordinates(in, 1, f.dimensions);
  f.narrow_shared = narrow_base(in.operands[0], names);
  f.narrow_object = narrow_base(in.operands[2], names);
  FlowSelection s;
  s.run = load;
  s.operands = {address_form(f.narrow_shared), OperandForm::coordinates,
                address_form(f.narrow_object)};
  if (f.multicast) s.operands.push_back(OperandForm::src32);
  if (policy) s.operands.push_back(OperandForm::ignored);
  s.uses_extra = true;
  s.uses_cluster = f.multicast;
  s.e = f.encode();
  return s;
}

// cp{.reduce}.async.bulk.tensor.dim.dst.src{.op}{.tile}.bulk_group [map, at], [from] {, policy}
FlowSelection select_store(const ptx::Instruction& in, const Names& names, TensorFlags f,
                           ModifierSequence m, bool reduces) {
  m.need("shared::cta");
  for (unsigned op = 0; reduces && op < kOperations.size(); ++op) {
    if (m.take(kOperations[op])) f.operation = op + 1;
  }
  m.take("tile");
  m.need("bulk_group");
  const bool policy = m.take("L2::cache_hint");
  m.end();
  if (reduces != (f.operation != 0) || in.operands.size() != 2u + (policy ? 1 : 0))
    throw_unsupported(in);
  check_coordinates(in, 0, f.dimensions);
  f.narrow_shared = narrow_base(in.operands[1], names);
  FlowSelection s;
  s.run = store;
  s.operands = {OperandForm::coordinates, address_form(f.narrow_shared)};
  if (policy) s.operands.push_back(OperandForm::ignored);
  s.uses_extra = true;
  s.ordered = reduces && !is_bitwise(kOperations[f.operation - 1]);
  s.e = f.encode();
  return s;
}

// cp.async.bulk.prefetch.tensor.dim.L2.src{.tile} [map, at] {, policy}
FlowSelection select_prefetch(const ptx::Instruction& in, const TensorFlags& f,
                              ModifierSequence m) {
  m.need("L2");
  m.need("global");
  m.take("tile");
  const bool policy = m.take("L2::cache_hint");
  m.end();
  if (in.operands.size() != 1u + (policy ? 1 : 0)) throw_unsupported(in);
  check_coordinates(in, 0, f.dimensions);
  FlowSelection s;
  s.run = prefetch;
  s.operands = {OperandForm::coordinates};
  if (policy) s.operands.push_back(OperandForm::ignored);
  s.uses_extra = true;
  return s;
}

}  // namespace

std::optional<FlowSelection> select_tensor_copy(const ptx::Instruction& in, const Names& names) {
  if (in.opcode != "cp" || !has(in, "tensor")) return std::nullopt;
  ModifierSequence m(in);
  const bool reduces = m.take("reduce");
  m.need("async");
  m.need("bulk");
  const bool prefetches = m.take("prefetch");
  m.need("tensor");
  TensorFlags f;
  f.dimensions = dimensions_of(in, m);
  FlowSelection s;
  if (prefetches) {
    s = select_prefetch(in, f, m);
  } else if (!reduces && (m.take("shared::cluster") || m.take("shared::cta"))) {
    s = select_load(in, names, f, m);
  } else {
    m.need("global");
    s = select_store(in, names, f, m, reduces);
  }
  s.cls = InstrClass::memory;
  return s;
}

}  // namespace assay::sim
