// ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements (PTX ISA 9.0, "Warp-level
// matrix load instruction: ldmatrix" and after).
//
// Lane 4 g + t holds elements 2 t and 2 t + 1 of row g, or with .trans of column g. Lanes 8 j to 8
// j + 7 give the addresses of the rows of matrix j. One access moves all rows, 16 bytes per lane;
// since accesses of 16 bytes go by quarter warps, only rows of the same matrix can conflict.
#include <cstring>

#include "sim/address_map.h"
#include "sim/operations/tensor_ops.h"

namespace assay::sim {
namespace {

struct Matrix {
  std::uint16_t element[8][8];  // as stored in a register or in memory
};

Matrix transposed(const Matrix& from) {
  Matrix to;
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 8; ++c) to.element[r][c] = from.element[c][r];
  }
  return to;
}

Matrix matrix_of(const Lanes32& from) {
  Matrix to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

void store(Lanes32& to, const Matrix& from) { std::memcpy(&to, &from, sizeof from); }

struct Rows {
  Matrix matrix[4] = {};
  std::uint64_t address[32] = {};
};

template <int count>
constexpr std::uint32_t kRowLanes = count == 4 ? ~0u : (1u << 8 * count) - 1;

template <ptx::Space space>
void addresses(Warp& w, const Instr& i, std::uint32_t slot, Rows& rows) {
  for (int lane = 0; lane < 32; ++lane) {
    if constexpr (space == ptx::Space::shared) {
      // Addresses in the window have 32 bits and wrap around.
      rows.address[lane] = static_cast<std::uint32_t>(w.r32(slot).v[lane] + i.imm);
    } else {
      // Must point into the window.
      rows.address[lane] = w.r64(slot).v[lane] + i.imm - kSharedRange.begin;
    }
  }
}

template <int count, bool trans, ptx::Space space>
void run_ldmatrix(Warp& w, const Instr& i) {
  require_full_warp(w);
  const std::uint32_t* slot = w.extra + i.aux;
  Rows rows;
  addresses<space>(w, i, slot[count], rows);
  read_lanes(w, ptx::Space::shared, rows.address, kRowLanes<count>, 16, rows.matrix);
  for (int j = 0; j < count; ++j) {
    store(w.r32(slot[j]), trans ? transposed(rows.matrix[j]) : rows.matrix[j]);
  }
}

template <int count, bool trans, ptx::Space space>
void run_stmatrix(Warp& w, const Instr& i) {
  require_full_warp(w);
  const std::uint32_t* slot = w.extra + i.aux;
  Rows rows;
  addresses<space>(w, i, slot[0], rows);
  for (int j = 0; j < count; ++j) {
    const Matrix m = matrix_of(w.r32(slot[1 + j]));
    rows.matrix[j] = trans ? transposed(m) : m;
  }
  write_lanes(w, ptx::Space::shared, rows.address, kRowLanes<count>, 16, rows.matrix);
}

void run_movmatrix(Warp& w, const Instr& i) {
  require_full_warp(w);
  store(w.r32(i.d), transposed(matrix_of(w.r32(i.a))));
}

template <int count, bool trans, ptx::Space space>
Handler handler(bool load) {
  return load ? run_ldmatrix<count, trans, space> : run_stmatrix<count, trans, space>;
}

template <int count>
Handler handler(bool load, bool trans, bool shared) {
  constexpr auto window = ptx::Space::shared, generic = ptx::Space::generic;
  if (trans)
    return shared ? handler<count, true, window>(load) : handler<count, true, generic>(load);
  return shared ? handler<count, false, window>(load) : handler<count, false, generic>(load);
}

Selection select_movmatrix(Qualifiers& q) {
  q.require("m8n8");
  q.require("trans");
  q.require("b16");
  q.end();
  Selection s =
      select_full_warp(run_movmatrix, InstrClass::warp, {OperandForm::dst32, OperandForm::src32});
  s.uses_extra = false;
  return s;
}

}  // namespace

Selection select_matrix_move(const ptx::Instruction& i) {
  Qualifiers q(i);
  q.require("sync");
  q.require("aligned");
  if (i.opcode == "movmatrix") return select_movmatrix(q);
  if (q.take("m8n16") || q.take("m16n16") || q.take("m16n8")) {
    refuse_tensor(i, "matrices of 8 bits and less need sm_100a");
  }
  q.require("m8n8");
  int count = 1;
  if (q.take("x2")) {
    count = 2;
  } else if (q.take("x4")) {
    count = 4;
  } else {
    q.require("x1");
  }
  const bool trans = q.take("trans");
  const ptx::Space space = q.space();
  if (space == ptx::Space::global) q.refuse();
  q.require("b16");
  q.end();

  const bool load = i.opcode == "ldmatrix", shared = space == ptx::Space::shared;
  const Handler run = count == 1   ? handler<1>(load, trans, shared)
                      : count == 2 ? handler<2>(load, trans, shared)
                                   : handler<4>(load, trans, shared);
  const OperandForm address = address_form(shared);
  if (load) {
    return select_full_warp(run, InstrClass::memory,
                            {fragment_form(i, 0, count, OperandForm::dst32_list), address});
  }
  return select_full_warp(run, InstrClass::memory,
                          {address, fragment_form(i, 1, count, OperandForm::src32_list)});
}

}  // namespace assay::sim
