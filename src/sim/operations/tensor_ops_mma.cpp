// mma.sync and wmma.mma (PTX ISA 9.0, "Matrix Multiply-Accumulate Operation").
//
// wmma.mma multiplies fragments in the layout of tensor_ops_wmma.cpp, the same for row-major and
// column-major matrices: its .row and .col change nothing here.
#include <array>
#include <bit>
#include <utility>

#include "sim/operations/tensor_ops.h"

namespace assay::sim {
namespace {

struct Variant {
  bool wmma = false;
  TensorType type{};  // of A, its class's first: s8 stands for u8, s4 for u4, e4m3 for e5m2
  MmaShape shape;
};

using enum TensorType;

constexpr Variant kVariants[] = {
    {false, f16, {16, 8, 8}},   {false, f16, {16, 8, 16}},  {false, bf16, {16, 8, 8}},
    {false, bf16, {16, 8, 16}}, {false, tf32, {16, 8, 4}},  {false, tf32, {16, 8, 8}},
    {false, e4m3, {16, 8, 16}}, {false, e4m3, {16, 8, 32}}, {false, s8, {8, 8, 16}},
    {false, s8, {16, 8, 16}},   {false, s8, {16, 8, 32}},   {false, s4, {8, 8, 32}},
    {false, s4, {16, 8, 32}},   {false, s4, {16, 8, 64}},   {false, b1, {8, 8, 128}},
    {false, b1, {16, 8, 128}},  {false, b1, {16, 8, 256}},  {false, f64, {8, 8, 4}},
    {false, f64, {16, 8, 4}},   {false, f64, {16, 8, 8}},   {false, f64, {16, 8, 16}},
    {true, f16, {16, 16, 16}},  {true, f16, {32, 8, 16}},   {true, f16, {8, 32, 16}},
    {true, bf16, {16, 16, 16}}, {true, bf16, {32, 8, 16}},  {true, bf16, {8, 32, 16}},
    {true, s8, {16, 16, 16}},   {true, s8, {32, 8, 16}},    {true, s8, {8, 32, 16}},
    {true, tf32, {16, 16, 8}},  {true, f64, {8, 8, 4}},
};

// What the handler needs to know of a variant.
struct Plan {
  Mma32 run32 = nullptr;
  Mma64 run64 = nullptr;
  bool mirrored = false;
  int used_a = 0, used_b = 0;  // registers that hold the matrices
  int list_a = 0, list_b = 0;  // registers in the lists: always 8 for wmma and f16
  int full_c = 0;              // for C in f32, s32 or f64; f16 takes half as many
};

Plan plan_of(const Variant& v) {
  Plan p;
  const int bits = bits_of(v.type);
  p.mirrored = v.shape.mirrored();
  const MmaShape computed = p.mirrored ? v.shape.mirror() : v.shape;
  if (v.type == f64) {
    p.run64 = find_mma64(computed);
  } else {
    p.run32 = find_mma32(v.type, computed);
  }
  p.used_a = layout_a(v.shape, bits).registers;
  p.used_b = layout_b(v.shape, bits).registers;
  p.list_a = v.wmma && v.type == f16 ? 8 : p.used_a;
  p.list_b = v.wmma && v.type == f16 ? 8 : p.used_b;
  p.full_c = layout_c(v.shape, v.type == f64 ? 64 : 32).registers;
  return p;
}

const Plan& plan(std::size_t variant) {
  static const auto plans = [] {
    std::array<Plan, std::size(kVariants)> all;
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = plan_of(kVariants[v]);
    return all;
  }();
  return plans[variant];
}

// Instr::imm.
struct Packed {
  std::uint16_t variant = 0;
  MmaMode mode;
};
static_assert(sizeof(Packed) == sizeof(std::uint64_t));

Lanes32& lanes_at(Warp& w, std::uint32_t slot, const Lanes32*) { return w.r32(slot); }
Lanes64& lanes_at(Warp& w, std::uint32_t slot, const Lanes64*) { return w.r64(slot); }

template <class Lanes>
void run_mma(Warp& w, const Instr& i) {
  require_full_warp(w);
  const auto packed = std::bit_cast<Packed>(i.imm);
  const Plan& p = plan(packed.variant);
  const int count_d = packed.mode.half_d ? p.full_c / 2 : p.full_c;
  const int count_c = packed.mode.half_c ? p.full_c / 2 : p.full_c;
  const std::uint32_t* d = w.extra + i.aux;
  const std::uint32_t *a = d + count_d, *b = a + p.list_a, *c = b + p.list_b;
  const auto lanes = [&](std::uint32_t slot) {
    return &lanes_at(w, slot, static_cast<const Lanes*>(nullptr));
  };
  MmaRegisters<Lanes> x;
  for (int r = 0; r < count_d; ++r) x.d[r] = lanes(d[r]);
  for (int r = 0; r < count_c; ++r) x.c[r] = lanes(c[r]);
  for (int r = 0; r < p.used_a; ++r) (p.mirrored ? x.b : x.a)[r] = lanes(a[r]);
  for (int r = 0; r < p.used_b; ++r) (p.mirrored ? x.a : x.b)[r] = lanes(b[r]);
  if constexpr (std::is_same_v<Lanes, Lanes64>) {
    p.run64(x);
  } else {
    p.run32(x, packed.mode);
  }
}

TensorType kind_of(TensorType t) {
  switch (t) {
    case u8: return s8;
    case u4: return s4;
    case e5m2: return e4m3;
    default: return t;
  }
}

struct Types {
  TensorType d{}, a{}, b{}, c{};
};

bool consistent(const Types& t, bool wmma) {
  if (kind_of(t.a) != kind_of(t.b)) return false;
  const auto half_or_single = [](TensorType x) { return x == f16 || x == f32; };
  switch (kind_of(t.a)) {
    case f16: return half_or_single(t.d) && half_or_single(t.c) && (wmma || t.c == t.d);
    case e4m3: return half_or_single(t.d) && t.c == t.d;
    case bf16:
    case tf32: return t.d == f32 && t.c == f32;
    case f64: return t.d == f64 && t.c == f64;
    case s8:
      if (wmma && t.a != t.b) return false;
      [[fallthrough]];
    case s4:
    case b1: return t.d == s32 && t.c == s32;
    default: return false;
  }
}

std::size_t find_variant(bool wmma, TensorType type, MmaShape shape) {
  std::size_t v = 0;
  while (v < std::size(kVariants) &&
         !(kVariants[v].wmma == wmma && kVariants[v].type == type && kVariants[v].shape == shape)) {
    ++v;
  }
  return v;
}

void refuse_known(const ptx::Instruction& i) {
  for (const std::string& m : i.modifiers) {
    if (m.starts_with("sp") && (m.size() == 2 || m[2] == ':')) {
      refuse_tensor(i, "sparse matrices are not simulated");
    }
    if (m == "block_scale" || m.starts_with("kind::")) refuse_tensor(i, "needs sm_100a or sm_120a");
  }
}

}  // namespace

Selection select_mma(const ptx::Instruction& i) {
  refuse_known(i);
  const bool wmma = i.opcode == "wmma";
  Qualifiers q(i);
  if (wmma) q.require("mma");
  q.require("sync");
  q.require("aligned");
  const MmaShape shape = q.shape();
  const std::vector<TensorType> types = q.types();
  Types t;
  if (types.size() == 4) {
    t = {types[0], types[1], types[2], types[3]};
  } else if (wmma && types.size() == 2) {  // the multiplicands are f16
    t = {types[0], f16, f16, types[1]};
  } else {
    q.refuse();
  }
  MmaMode mode;
  mode.saturate = q.take("satfinite");
  const bool rounding = q.take("rn");
  if (t.a == b1) {
    mode.conjunction = q.take("and");
    if (!mode.conjunction) q.require("xor");
    q.require("popc");
  }
  if (!wmma && kind_of(t.a) == f16 && shape == MmaShape{8, 8, 4}) {
    refuse_tensor(i, "the product of quarter warps of sm_70 is not simulated");
  }
  // mma always has .row.col. The fragments of wmma are the same for all layouts.
  for (int matrix = 0; matrix < 2; ++matrix) {
    if (wmma ? !q.take("row") && !q.take("col") : !q.take(matrix == 0 ? "row" : "col")) q.refuse();
  }
  q.end();
  const TensorType kind = kind_of(t.a);
  const bool integer = kind == s8 || kind == s4;
  if (!consistent(t, wmma) || (mode.saturate && !integer) || (rounding && kind != f64)) q.refuse();
  const std::size_t variant = find_variant(wmma, kind, shape);
  if (variant == std::size(kVariants)) q.refuse();

  mode.a = t.a;
  mode.b = t.b;
  mode.half_c = t.c == f16;
  mode.half_d = t.d == f16;
  const Plan& p = plan(variant);
  const bool wide = kind == f64;
  const OperandForm dst = wide ? OperandForm::dst64_list : OperandForm::dst32_list;
  const OperandForm src = wide ? OperandForm::src64_list : OperandForm::src32_list;
  Selection s =
      select_full_warp(wide ? run_mma<Lanes64> : run_mma<Lanes32>, InstrClass::tensor,
                       {fragment_form(i, 0, mode.half_d ? p.full_c / 2 : p.full_c, dst),
                        fragment_form(i, 1, p.list_a, src), fragment_form(i, 2, p.list_b, src),
                        fragment_form(i, 3, mode.half_c ? p.full_c / 2 : p.full_c, src)});
  s.imm = std::bit_cast<std::uint64_t>(Packed{static_cast<std::uint16_t>(variant), mode});
  s.tensor_flops = static_cast<std::uint32_t>(2 * shape.m * shape.n * shape.k);
  return s;
}

}  // namespace assay::sim
