// wmma.load and wmma.store (PTX ISA 9.0, "Warp-level Matrix Load Instruction: wmma.load").
//
// The ISA does not specify which lane holds which element. Here it is as in math/tensor_layout.h,
// in tiles of mma.sync, which is what sm_80 and sm_90 do as far as is known. Lists with room for
// two or four copies of the matrix (f16) hold that many, so that code that changes every element of
// a fragment keeps the copies equal.
//
// As accesses, a load or store moves each element once. A line is what is contiguous in memory: a
// row (.row) or a column (.col). Multiplicands are moved as with ldmatrix: in pieces of 16 bytes,
// or of the fragment's size if that is less (no more can be assumed of the alignment), and lanes go
// down eight lines first. Accumulators are moved in tiles: two elements per lane, four lanes per
// line.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sim/operations/tensor_ops.h"

namespace assay::sim {
namespace {

using enum TensorType;

struct WmmaFragment {
  char matrix = 'a';
  TensorType type{};
  MmaShape shape;
};

// Accumulators first. s8 stands for u8 and f32 for s32; m16n16k8 has the accumulators of m16n16k16.
constexpr WmmaFragment kFragments[] = {
    {'c', f32, {16, 16, 16}}, {'c', f32, {32, 8, 16}},   {'c', f32, {8, 32, 16}},
    {'c', f16, {16, 16, 16}}, {'c', f16, {32, 8, 16}},   {'c', f16, {8, 32, 16}},
    {'c', f64, {8, 8, 4}},    {'a', f16, {16, 16, 16}},  {'a', f16, {32, 8, 16}},
    {'a', f16, {8, 32, 16}},  {'b', f16, {16, 16, 16}},  {'b', f16, {32, 8, 16}},
    {'b', f16, {8, 32, 16}},  {'a', bf16, {16, 16, 16}}, {'a', bf16, {32, 8, 16}},
    {'a', bf16, {8, 32, 16}}, {'b', bf16, {16, 16, 16}}, {'b', bf16, {32, 8, 16}},
    {'b', bf16, {8, 32, 16}}, {'a', s8, {16, 16, 16}},   {'a', s8, {32, 8, 16}},
    {'a', s8, {8, 32, 16}},   {'b', s8, {16, 16, 16}},   {'b', s8, {32, 8, 16}},
    {'b', s8, {8, 32, 16}},   {'a', tf32, {16, 16, 8}},  {'b', tf32, {16, 16, 8}},
    {'a', f64, {8, 8, 4}},    {'b', f64, {8, 8, 4}},
};
constexpr std::size_t kAccumulators = 7;

constexpr FragmentLayout layout_of(const WmmaFragment& f) {
  const int bits = bits_of(f.type), listed = f.type == f16 ? 8 : 0;
  if (f.matrix == 'a') return layout_a(f.shape, bits, listed);
  if (f.matrix == 'b') return layout_b(f.shape, bits, listed);
  return layout_c(f.shape, bits);
}

// What a handler loads or stores.
struct Access {
  FragmentLayout layout;
  bool column_major = false;
  bool has_stride = false;  // an operand; otherwise lines are adjacent
  ptx::Space space = ptx::Space::generic;
  // The rest is derived.
  bool along_rows = false;  // a line is a row of the view
  int element_bytes = 0, lines = 0, line_bytes = 0;
  int piece_bytes = 0;  // moved by a lane at a time
  int across = 1;       // adjacent lanes along a line
  TileOrigin origin[8];
};

constexpr ptx::Space kSpaces[] = {ptx::Space::generic, ptx::Space::global, ptx::Space::shared};
constexpr std::size_t kAccessesPerFragment = 2 * 2 * std::size(kSpaces);

constexpr std::size_t access_index(std::size_t fragment, bool column_major, bool has_stride,
                                   std::size_t space) {
  const std::size_t flags = std::size_t{column_major} * 2 + std::size_t{has_stride};
  return fragment * kAccessesPerFragment + flags * std::size(kSpaces) + space;
}

constexpr Access access(std::size_t index) {
  const std::size_t flags = index % kAccessesPerFragment / std::size(kSpaces);
  Access x;
  x.layout = layout_of(kFragments[index / kAccessesPerFragment]);
  x.column_major = flags / 2 != 0;
  x.has_stride = flags % 2 != 0;
  x.space = kSpaces[index % std::size(kSpaces)];

  const FragmentLayout& f = x.layout;
  x.along_rows = x.column_major == f.transposed;
  x.element_bytes = f.element_bits / 8;
  x.lines = x.along_rows ? f.rows : f.cols;
  x.line_bytes = (x.along_rows ? f.cols : f.rows) * x.element_bytes;
  const int fragment_bytes = f.registers * (f.element_bits == 64 ? 8 : 4);
  x.piece_bytes =
      f.accumulator ? 2 * x.element_bytes : std::min({16, fragment_bytes, x.line_bytes});
  x.across = f.accumulator ? 4 : 1;
  for (int t = 0; t < 8; ++t) x.origin[t] = f.origin(t);
  return x;
}

constexpr int kMatrixBytes = 1024;  // at most

// Address and stride of the first lane; those of the others must be the same, else the result is
// undefined.
template <class Lanes>
std::uint64_t uniform(Warp& w, const Lanes& lanes, const char* what) {
  std::uint32_t different = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    different |= static_cast<std::uint32_t>(lanes.v[lane] != lanes.v[0]) << lane;
  }
  if (different != 0) [[unlikely]] {
    fail(
        w, FindingKind::warp_sync, static_cast<std::uint32_t>(std::countr_zero(different)),
        std::string("gives another ") + what + " to a matrix instruction than its warp's thread 0");
  }
  return lanes.v[0];
}

// Up to 32 pieces: their addresses, and their places in the buffer of all lines.
struct Pieces {
  int count = 0;
  std::uint64_t address[32];
  int at[32];

  std::uint32_t lanes() const { return count == 32 ? ~0u : (1u << count) - 1; }
};

// Calls move(pieces) until all are moved.
template <class Move>
void for_each_access(Warp& w, const Instr& i, const Access& x, std::uint32_t address_slot,
                     std::uint32_t stride_slot, Move move) {
  const bool shared = x.space == ptx::Space::shared;
  const std::uint64_t base = i.imm + (shared ? uniform(w, w.r32(address_slot), "address")
                                             : uniform(w, w.r64(address_slot), "address"));
  auto stride = static_cast<std::uint64_t>(x.line_bytes);
  if (x.has_stride) {
    stride = uniform(w, w.r32(stride_slot), "stride") * static_cast<unsigned>(x.element_bytes);
  }
  const std::uint64_t wrap = shared ? 0xffffffffu : ~std::uint64_t{0};
  const int down = std::min(8, x.lines), along = x.across * x.piece_bytes;
  Pieces pieces;
  for (int byte = 0; byte < x.line_bytes; byte += along) {
    for (int line = 0; line < x.lines; line += down) {
      for (int l = line; l < line + down; ++l) {
        for (int b = byte; b < byte + along; b += x.piece_bytes) {
          pieces.address[pieces.count] =
              (base + static_cast<unsigned>(l) * stride + static_cast<unsigned>(b)) & wrap;
          pieces.at[pieces.count++] = l * x.line_bytes + b;
        }
      }
      if (pieces.count == 32) {
        move(pieces);
        pieces.count = 0;
      }
    }
  }
  if (pieces.count != 0) move(pieces);
}

// Pieces have one of a few sizes: copies of constant size are single moves.
void copy_piece(std::byte* to, const std::byte* from, int bytes) {
  switch (bytes) {
    case 4: std::memcpy(to, from, 4); break;
    case 8: std::memcpy(to, from, 8); break;
    default: std::memcpy(to, from, 16); break;
  }
}

// Converts between lines as stored in memory and registers.
template <class Element, bool along_rows>
struct Tiles {
  static constexpr int width = tile_width(8 * sizeof(Element));

  const Access& x;
  int line_elements = along_rows ? x.layout.cols : x.layout.rows;

  std::size_t at(TileOrigin o, int row, int col) const {
    const int line = along_rows ? o.row + row : o.col + col;
    const int place = along_rows ? o.col + col : o.row + row;
    return static_cast<std::size_t>(line * line_elements + place);
  }

  void to_registers(const Element* matrix, std::byte* regs, const std::uint32_t* slot) const {
    if (x.layout.pairs()) {
      for (int t = 0; t < x.layout.registers / 2; ++t) {
        const TileOrigin o = x.origin[t];
        Element even[32], odd[32];
        for (int lane = 0; lane < 32; ++lane) {
          even[lane] = matrix[at(o, lane / 4, lane % 4 * 2)];
          odd[lane] = matrix[at(o, lane / 4, lane % 4 * 2 + 1)];
        }
        std::memcpy(regs + slot[2 * t], even, sizeof even);
        std::memcpy(regs + slot[2 * t + 1], odd, sizeof odd);
      }
      return;
    }
    for (int t = 0; t < x.layout.registers; ++t) {
      const TileOrigin o = x.origin[t];
      Element tile[8][width];
      for (int r = 0; r < 8; ++r) {
        for (int c = 0; c < width; ++c) tile[r][c] = matrix[at(o, r, c)];
      }
      std::memcpy(regs + slot[t], tile, sizeof tile);
    }
  }

  // For accumulators, which hold one copy.
  void from_registers(Element* matrix, const std::byte* regs, const std::uint32_t* slot) const {
    if (x.layout.pairs()) {
      for (int t = 0; t < x.layout.registers / 2; ++t) {
        const TileOrigin o = x.origin[t];
        Element even[32], odd[32];
        std::memcpy(even, regs + slot[2 * t], sizeof even);
        std::memcpy(odd, regs + slot[2 * t + 1], sizeof odd);
        for (int lane = 0; lane < 32; ++lane) {
          matrix[at(o, lane / 4, lane % 4 * 2)] = even[lane];
          matrix[at(o, lane / 4, lane % 4 * 2 + 1)] = odd[lane];
        }
      }
      return;
    }
    for (int t = 0; t < x.layout.registers; ++t) {
      const TileOrigin o = x.origin[t];
      Element tile[8][width];
      std::memcpy(tile, regs + slot[t], sizeof tile);
      for (int r = 0; r < 8; ++r) {
        for (int c = 0; c < width; ++c) matrix[at(o, r, c)] = tile[r][c];
      }
    }
  }
};

template <class Element, bool along_rows>
void load(Warp& w, const Instr& i, const Access& x) {
  require_full_warp(w);
  const std::uint32_t* slot = w.extra + i.aux;  // registers, address, stride
  const int n = x.layout.registers;
  Element matrix[kMatrixBytes / sizeof(Element)];
  for_each_access(w, i, x, slot[n], x.has_stride ? slot[n + 1] : 0, [&](const Pieces& pieces) {
    alignas(64) std::byte data[32 * 16];
    read_lanes(w, x.space, pieces.address, pieces.lanes(), static_cast<unsigned>(x.piece_bytes),
               data);
    auto* lines = reinterpret_cast<std::byte*>(matrix);
    for (int p = 0; p < pieces.count; ++p) {
      copy_piece(lines + pieces.at[p], data + p * x.piece_bytes, x.piece_bytes);
    }
  });
  Tiles<Element, along_rows>{x}.to_registers(matrix, w.regs, slot);
}

template <class Element, bool along_rows>
void store(Warp& w, const Instr& i, const Access& x) {
  require_full_warp(w);
  const std::uint32_t* slot = w.extra + i.aux;  // address, registers, stride
  Element matrix[kMatrixBytes / sizeof(Element)];
  Tiles<Element, along_rows>{x}.from_registers(matrix, w.regs, slot + 1);
  const std::uint32_t stride_slot = x.has_stride ? slot[1 + x.layout.registers] : 0;
  for_each_access(w, i, x, slot[0], stride_slot, [&](const Pieces& pieces) {
    alignas(64) std::byte data[32 * 16];
    const auto* lines = reinterpret_cast<const std::byte*>(matrix);
    for (int p = 0; p < pieces.count; ++p) {
      copy_piece(data + p * x.piece_bytes, lines + pieces.at[p], x.piece_bytes);
    }
    write_lanes(w, x.space, pieces.address, pieces.lanes(), static_cast<unsigned>(x.piece_bytes),
                data);
  });
}

template <std::size_t index>
inline constexpr Access kAccess = access(index);

template <int bits>
using Element = std::conditional_t<
    bits == 64, std::uint64_t,
    std::conditional_t<bits == 32, std::uint32_t,
                       std::conditional_t<bits == 16, std::uint16_t, std::uint8_t>>>;

template <std::size_t index>
void run_load(Warp& w, const Instr& i) {
  using E = Element<kAccess<index>.layout.element_bits>;
  load<E, kAccess<index>.along_rows>(w, i, kAccess<index>);
}

template <std::size_t index>
void run_store(Warp& w, const Instr& i) {
  using E = Element<kAccess<index>.layout.element_bits>;
  store<E, kAccess<index>.along_rows>(w, i, kAccess<index>);
}

template <std::size_t... index>
constexpr std::array<Handler, sizeof...(index)> loads(std::index_sequence<index...>) {
  return {run_load<index>...};
}

template <std::size_t... index>
constexpr std::array<Handler, sizeof...(index)> stores(std::index_sequence<index...>) {
  return {run_store<index>...};
}

constexpr auto kLoads =
    loads(std::make_index_sequence<std::size(kFragments) * kAccessesPerFragment>{});
constexpr auto kStores = stores(std::make_index_sequence<kAccumulators * kAccessesPerFragment>{});

// The index in kFragments; throws if there is no such fragment.
std::size_t find_fragment(const Qualifiers& q, char matrix, TensorType type, MmaShape shape) {
  // The element types of C follow from the shape.
  if (matrix == 'c') {
    const bool narrow = shape == MmaShape{16, 16, 8};
    if (narrow && type != f32) q.refuse();
    if (narrow) shape = {16, 16, 16};
    if (type == s32) type = f32;
  } else if (type == u8) {
    type = s8;
  }
  for (std::size_t f = 0; f < std::size(kFragments); ++f) {
    if (kFragments[f].matrix == matrix && kFragments[f].type == type &&
        kFragments[f].shape == shape) {
      return f;
    }
  }
  q.refuse();
}

}  // namespace

Selection select_wmma_memory(const ptx::Instruction& i) {
  Qualifiers q(i);
  const bool is_store = q.take("store");
  if (!is_store) q.require("load");
  char matrix = 'c';
  if (is_store) {
    q.require("d");
  } else if (q.take("a")) {
    matrix = 'a';
  } else if (q.take("b")) {
    matrix = 'b';
  } else {
    q.require("c");
  }
  q.require("sync");
  q.require("aligned");
  const bool column_major = q.take("col");
  if (!column_major) q.require("row");
  const MmaShape shape = q.shape();
  const std::vector<TensorType> types = q.types();
  const ptx::Space space = q.space();
  q.end();
  if (types.size() != 1) q.refuse();

  const std::size_t fragment = find_fragment(q, matrix, types[0], shape);
  const bool has_stride = i.operands.size() == 3;
  const auto space_index =
      static_cast<std::size_t>(std::find(std::begin(kSpaces), std::end(kSpaces), space) - kSpaces);
  const std::size_t index = access_index(fragment, column_major, has_stride, space_index);

  using Form = OperandForm;
  const FragmentLayout layout = layout_of(kFragments[fragment]);
  const bool wide = layout.element_bits == 64;
  const Form address = address_form(space == ptx::Space::shared);
  std::vector<Form> forms;
  if (is_store) {
    forms = {address,
             fragment_form(i, 1, layout.registers, wide ? Form::src64_list : Form::src32_list)};
  } else {
    forms = {fragment_form(i, 0, layout.registers, wide ? Form::dst64_list : Form::dst32_list),
             address};
  }
  if (has_stride) forms.push_back(Form::src32);
  return select_full_warp(is_store ? kStores[index] : kLoads[index], InstrClass::memory,
                          std::move(forms));
}

}  // namespace assay::sim
