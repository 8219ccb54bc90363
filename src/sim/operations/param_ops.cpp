// ld.param and st.param: kernel parameters, and the .param variables of calls, which are rows of
// the frame: word w of all lanes is a Lanes32.
#include <array>
#include <bit>
#include <cstring>

#include "sim/execution/memory_path.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/lane_ops.h"
#include "sim/operations/modifiers.h"

namespace assay::sim {

using ptx::Operand;
using ptx::Type;

namespace {

std::uint64_t extended(const MemoryFlags& f, std::uint64_t value) {
  if (f.extend_from == 0) return value;
  const unsigned up = 32u - f.extend_from;
  const auto wide = static_cast<std::uint32_t>(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(value) << up) >> up);
  return f.extend_to >= 32 ? wide : wide & ((1u << f.extend_to) - 1);
}

// The same value for every lane. imm: offset in the parameter block, checked by the decoder.
template <unsigned kBytes, unsigned kVector>
void load_kernel_param(Warp& w, const Instr& in) {
  const std::byte* from = w.block->grid->params.data() + in.imm;
  const MemoryFlags f = MemoryFlags::decode(in.e);
  const std::uint32_t* slots = kVector == 1 ? &in.d : w.extra + in.aux;
  for (unsigned v = 0; v < kVector; ++v) {
    std::uint64_t value = 0;
    std::memcpy(&value, from + v * kBytes, kBytes);
    if constexpr (kBytes == 8) {
      each64(w, slots[v], [&](unsigned) { return value; });
    } else {
      const auto narrow = static_cast<std::uint32_t>(extended(f, value));
      each32(w, slots[v], [&](unsigned) { return narrow; });
    }
  }
}

// The place of byte `at` after the first. imm holds the row of the first byte and, above that, its
// byte position there.
struct RowPlace {
  std::uint32_t row;  // byte offset in the frame
  unsigned shift;     // bits
};
RowPlace place_of(std::uint64_t imm, unsigned at) {
  const auto byte = static_cast<std::uint32_t>(imm >> 32) + at;
  return {static_cast<std::uint32_t>(imm) + byte / 4 * static_cast<std::uint32_t>(sizeof(Lanes32)),
          8 * (byte % 4)};
}

template <unsigned kBytes, unsigned kVector>
void load_rows(Warp& w, const Instr& in) {
  const MemoryFlags f = MemoryFlags::decode(in.e);
  const std::uint32_t* slots = kVector == 1 ? &in.d : w.extra + in.aux;
  for (unsigned v = 0; v < kVector; ++v) {
    const RowPlace p = place_of(in.imm, v * kBytes);
    const Lanes32* row = &w.r32(p.row);
    if constexpr (kBytes == 8) {
      each64(w, slots[v],
             [&](unsigned l) { return row[0].v[l] | (std::uint64_t{row[1].v[l]} << 32); });
    } else if constexpr (kBytes == 4) {
      put32(w, slots[v], row->v);
    } else {
      each32(w, slots[v], [&](unsigned l) {
        return static_cast<std::uint32_t>(
            extended(f, (row->v[l] >> p.shift) & ((1u << (8 * kBytes)) - 1)));
      });
    }
  }
}

template <unsigned kBytes, unsigned kVector>
void store_rows(Warp& w, const Instr& in) {
  const std::uint32_t* slots = kVector == 1 ? &in.a : w.extra + in.aux;
  for (unsigned v = 0; v < kVector; ++v) {
    const RowPlace p = place_of(in.imm, v * kBytes);
    if constexpr (kBytes == 8) {
      const Lanes64& s = w.r64(slots[v]);
      each32(w, p.row, [&](unsigned l) { return static_cast<std::uint32_t>(s.v[l]); });
      each32(w, p.row + sizeof(Lanes32),
             [&](unsigned l) { return static_cast<std::uint32_t>(s.v[l] >> 32); });
    } else if constexpr (kBytes == 4) {
      put32(w, p.row, w.r32(slots[v]).v);
    } else {
      const Lanes32 &s = w.r32(slots[v]), &row = w.r32(p.row);
      const std::uint32_t bits = ((1u << (8 * kBytes)) - 1) << p.shift;
      each32(w, p.row,
             [&](unsigned l) { return ((s.v[l] << p.shift) & bits) | (row.v[l] & ~bits); });
    }
  }
}

using Table = std::array<std::array<Handler, 3>, 4>;  // [log2 bytes][log2 vector]

#define ASSAY_TABLE(f)                                                                         \
  {                                                                                            \
    {                                                                                          \
      {f<1, 1>, f<1, 2>, f<1, 4>}, {f<2, 1>, f<2, 2>, f<2, 4>}, {f<4, 1>, f<4, 2>, f<4, 4>}, { \
        f<8, 1>, f<8, 2>, f<8, 4>                                                              \
      }                                                                                        \
    }                                                                                          \
  }
constexpr Table kKernelLoads ASSAY_TABLE(load_kernel_param);
constexpr Table kRowLoads ASSAY_TABLE(load_rows);
constexpr Table kRowStores ASSAY_TABLE(store_rows);
#undef ASSAY_TABLE

const Symbol* base_symbol(const Operand& o, const Names& names) {
  if (o.kind != Operand::Kind::address || o.elements.empty()) return nullptr;
  const Operand& base = o.elements[0];
  return base.kind == Operand::Kind::symbol ? names.symbol(base.name) : nullptr;
}

unsigned register_bits(const Operand& o, const Names& names) {
  const Operand& first = o.kind == Operand::Kind::vector && !o.elements.empty() ? o.elements[0] : o;
  return first.kind == Operand::Kind::reg ? bits_of(names.register_type(first.name)) : 32;
}

}  // namespace

std::optional<FlowSelection> select_param(const ptx::Instruction& in, const Names& names) {
  const bool loads = in.opcode == "ld";
  if ((!loads && in.opcode != "st") || in.operands.size() != 2) return std::nullopt;
  const auto m = memory_modifiers(in);
  if (!m || m->space != ptx::Space::param) return std::nullopt;
  const Operand& value = in.operands[loads ? 0 : 1];
  const Operand& address = in.operands[loads ? 1 : 0];
  const Symbol* symbol = base_symbol(address, names);
  if (symbol == nullptr) return std::nullopt;
  const bool rows = symbol->kind == Symbol::Kind::rows;
  if (!rows && (symbol->kind != Symbol::Kind::kernel_param || !loads)) throw_unsupported(in);

  const std::size_t bytes = ptx::size_of(m->type);
  const std::uint64_t at = static_cast<std::uint64_t>(address.offset + address.elements[0].offset);
  if (bytes == 0 || bytes > 8 || m->vector > 4 || at > symbol->bytes ||
      symbol->bytes - at < bytes * m->vector || at % bytes != 0) {
    throw_unsupported(in, "this access to a parameter");
  }
  const std::size_t elements = value.kind == Operand::Kind::vector ? value.elements.size() : 1;
  if (elements != m->vector) throw_unsupported(in, "this number of elements");

  FlowSelection s;
  s.cls = InstrClass::other;
  s.spread = Spread{rows ? Spread::Kind::rows : Spread::Kind::none};
  const Table& table = !rows ? kKernelLoads : loads ? kRowLoads : kRowStores;
  s.run = table[static_cast<std::size_t>(std::countr_zero(bytes))]
               [static_cast<std::size_t>(std::countr_zero(m->vector))];
  MemoryFlags flags;
  if (loads && is_signed(m->type) && bytes < 4) {
    const unsigned to = register_bits(value, names);
    flags.extend_from = static_cast<std::uint8_t>(8 * bytes);
    flags.extend_to = static_cast<std::uint8_t>(to > 32 ? 32 : to);
  }
  s.e = flags.encode();
  s.imm = rows ? (symbol->value + at / 4 * sizeof(Lanes32)) | ((at % 4) << 32) : symbol->value + at;
  OperandForm form = loads ? OperandForm::dst32 : OperandForm::src32;
  if (bytes == 8) form = loads ? OperandForm::dst64 : OperandForm::src64;
  if (m->vector > 1) {
    form = bytes == 8 ? (loads ? OperandForm::dst64_list : OperandForm::src64_list)
                      : (loads ? OperandForm::dst32_list : OperandForm::src32_list);
  }
  s.operands =
      loads ? std::vector{form, OperandForm::ignored} : std::vector{OperandForm::ignored, form};
  return s;
}

}  // namespace assay::sim
