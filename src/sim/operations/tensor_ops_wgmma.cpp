// wgmma: products of the four warps of a warpgroup, with matrices in shared memory (PTX ISA 9.0,
// "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation").
//
// Each warp computes the sixteen rows of D that its registers hold, eight columns at a time, as
// mma.sync does; the fragments are the same. PTX moves accumulators between registers before it
// waits for products, so a product is complete at once. What the program may not yet do is found by
// other means: see sim/execution/warpgroup.h.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "sim/device.h"
#include "sim/execution/barriers.h"
#include "sim/execution/definedness.h"
#include "sim/execution/memory_path.h"
#include "sim/execution/warpgroup.h"
#include "sim/memory/bits.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/shared_matrix.h"
#include "sim/operations/tensor_ops.h"

namespace assay::sim {
namespace {

using enum TensorType;

constexpr unsigned kRows = 16;      // of D that a warp has
constexpr unsigned kRowBytes = 32;  // of A and B: all that one instruction multiplies
constexpr unsigned kMostColumns = 256;
constexpr unsigned kRegistersOfA = 4;

// Instr::imm.
struct Packed {
  TensorType a{}, b{};
  std::uint8_t blocks = 0;  // of eight columns
  bool half = false;        // D is f16
  bool a_in_registers = false;
  bool saturate = false;
  std::uint8_t negated = 0;  // bit 0: A, bit 1: B
  std::uint8_t k_major = 3;  // likewise

  unsigned registers() const { return blocks * (half ? 2u : 4u); }
};
static_assert(sizeof(Packed) == sizeof(std::uint64_t));

// Rows of 32 bytes, of A or of the transpose of B. `undefined`: rows in which a byte is.
template <unsigned kMostRows>
struct Operand {
  std::array<std::array<std::byte, kRowBytes>, kMostRows> row{};
  std::array<bool, kMostRows> undefined{};
};

// Pieces of shared memory, 32 at a time.
class Reader {
 public:
  // `counted`: the traffic is this warp's.
  Reader(WarpRun& w, bool counted) : w_(w), counted_(counted) {}

  // f(piece, bytes of it that are undefined) for each offset, by number.
  template <class F>
  void read(std::uint32_t count, const std::uint32_t* offset, F&& f) {
    for (std::uint32_t first = 0; first < count; first += kLanes) {
      const std::uint32_t lanes = std::min(count - first, std::uint32_t{kLanes});
      SharedRead r{w_.pc, static_cast<std::uint32_t>(low_bits(lanes)), {}};
      std::copy_n(offset + first, lanes, r.offset.begin());
      const bool undefined = access(r);
      for (std::uint32_t l = 0; l < lanes; ++l) {
        const std::uint32_t at = offset[first + l];
        f(first + l, w_.block->shared.data() + at,
          undefined ? w_.block->checker.undefined_bytes(true, at, kBulkPiece) : 0u);
      }
    }
  }

 private:
  // Whether something is undefined. The bytes are in bounds.
  bool access(const SharedRead& r) {
    std::array<std::uint64_t, kLanes> address{};
    std::copy(r.offset.begin(), r.offset.end(), address.begin());
    const WarpAccess a{AccessKind::load, kBulkPiece, r.mask,  address.data(),
                       nullptr,          r.pc,       w_.index};
    BlockChecker& checker = w_.block->checker;
    if (w_.replaying) return true;
    if (!(counted_ ? checker.shared(a) : checker.shared_uncounted(a))) fail_recorded(w_);
    if (checker.checks_races()) w_.products.add(r);
    const std::uint32_t lanes = std::exchange(checker.undefined, 0);
    if (lanes != 0) note_undefined(w_, a, lanes, true);
    return lanes != 0;
  }

  WarpRun& w_;
  bool counted_;
};

template <unsigned n>
void read_matrix(WarpRun& w, bool counted, const SharedMatrix& m, std::uint32_t first,
                 std::uint32_t rows, Operand<n>& to) {
  std::array<std::uint32_t, 2 * kMostColumns> offset;
  Reader reader(w, counted);
  if (m.k_major) {
    // Eight halves of rows at a time, which a swizzle spreads over all banks.
    const auto row = [](std::uint32_t i) { return i / 16 * 8 + i % 8; };
    const auto half = [](std::uint32_t i) { return i / 8 % 2; };
    for (std::uint32_t i = 0; i < 2 * rows; ++i) offset[i] = m.half_row(first + row(i), half(i));
    reader.read(2 * rows, offset.data(),
                [&](std::uint32_t i, const std::byte* piece, std::uint32_t undefined) {
                  std::memcpy(to.row[row(i)].data() + half(i) * kBulkPiece, piece, kBulkPiece);
                  to.undefined[row(i)] |= undefined != 0;
                });
    return;
  }
  constexpr std::uint32_t kDepth = kRowBytes / 2;  // elements of 16 bits
  const std::uint32_t pieces = rows / 8 * kDepth;
  for (std::uint32_t i = 0; i < pieces; ++i)
    offset[i] = m.eight_rows(first + i / kDepth * 8, i % kDepth);
  reader.read(pieces, offset.data(),
              [&](std::uint32_t i, const std::byte* piece, std::uint32_t undefined) {
                for (std::uint32_t r = 0; r < 8; ++r) {
                  const std::uint32_t row = i / kDepth * 8 + r;
                  std::memcpy(to.row[row].data() + i % kDepth * 2, piece + std::size_t{r} * 2, 2);
                  to.undefined[row] |= (undefined >> 2 * r & 3) != 0;
                }
              });
}

// Eight rows of one half: the lanes' bytes, one after the other.
template <unsigned n>
void fill_register(Lanes32& to, const Operand<n>& from, unsigned first, unsigned half) {
  for (unsigned r = 0; r < 8; ++r)
    std::memcpy(&to.v[std::size_t{r} * 4], from.row[first + r].data() + half * kBulkPiece,
                kBulkPiece);
}

// What changes the sign of every element in a register.
std::uint32_t signs(TensorType t) { return bits_of(t) == 16 ? 0x8000'8000u : 0x8000'0000u; }

void negate(Lanes32& x, TensorType t) {
  for (std::uint32_t& v : x.v) v ^= signs(t);
}

MmaShape shape_of(TensorType t) { return {kRows, 8, static_cast<int>(kRowBytes) * 8 / bits_of(t)}; }

// One product of a warp.
class Product {
 public:
  // Extra: of each register of D first where it is written, then where it is read, which is the
  // same; A and B; whether to add to D.
  Product(WarpRun& w, const Instr& in)
      : w_(w), op_(std::bit_cast<Packed>(in.imm)), slot_(w.extra + in.aux) {
    const std::uint32_t* const operands = slot_ + std::size_t{2} * op_.registers();
    a_slot_ = operands;
    b_slot_ = operands + (op_.a_in_registers ? kRegistersOfA : 1);
    adds_ = (w.preds[b_slot_[1]] & 1u) != 0;
  }

  void run() {
    read();
    if (w_.replaying) return write_undefined();
    multiply();
    if (w_.tainted && registers_undefined()) w_.seen_undefined = ~0u;
  }

 private:
  void read() {
    // All warps read B, which hardware reads once.
    const bool first = w_.index % kWarpgroup == 0;
    read_matrix(w_, first, matrix(b_slot_[0], 1), 0, op_.blocks * 8u, b_);
    if (op_.a_in_registers) return;
    read_matrix(w_, true, matrix(a_slot_[0], 0), w_.index % kWarpgroup * kRows, kRows, a_);
  }

  SharedMatrix matrix(std::uint32_t slot, unsigned which) const {
    const auto m = SharedMatrix::decode(w_.r64(slot).v[0], (op_.k_major >> which & 1u) != 0);
    if (m.base_offset != 0) throw Unsupported("wgmma: a matrix with a base offset");
    return m;
  }

  void multiply() {
    const Mma32 run = find_mma32(op_.a == u8 ? s8 : op_.a, shape_of(op_.a));
    const MmaMode mode{
        .a = op_.a, .b = op_.b, .half_c = op_.half, .half_d = op_.half, .saturate = op_.saturate};
    std::array<Lanes32, kRegistersOfA> a;
    for (unsigned r = 0; r < kRegistersOfA; ++r) {
      if (op_.a_in_registers) {
        a[r] = w_.r32(a_slot_[r]);
      } else {
        fill_register(a[r], a_, r % 2 * 8, r / 2);
      }
      if ((op_.negated & 1) != 0) negate(a[r], op_.a);
    }
    const Lanes32 zero{};
    const unsigned per_block = op_.registers() / op_.blocks;
    for (unsigned block = 0; block < op_.blocks; ++block) {
      std::array<Lanes32, 2> b;
      for (unsigned half = 0; half < 2; ++half) {
        fill_register(b[half], b_, block * 8, half);
        if ((op_.negated & 2) != 0) negate(b[half], op_.b);
      }
      MmaRegisters<Lanes32> x;
      for (unsigned r = 0; r < kRegistersOfA; ++r) x.a[r] = &a[r];
      for (unsigned r = 0; r < 2; ++r) x.b[r] = &b[r];
      for (unsigned r = 0; r < per_block; ++r) {
        x.d[r] = &w_.r32(d_slot(block * per_block + r));
        x.c[r] = adds_ ? x.d[r] : &zero;
      }
      run(x, mode);
    }
  }

  std::uint32_t d_slot(unsigned i) const { return slot_[std::size_t{2} * i]; }

  // --- definedness: see sim/execution/definedness.h

  const Lanes32& shadow(std::uint32_t slot) const {
    return *reinterpret_cast<const Lanes32*>(w_.frame->shadow->bits.data() + slot);
  }
  bool undefined(std::uint32_t slot) const {
    return std::ranges::any_of(shadow(slot).v, [](std::uint32_t v) { return v != 0; });
  }
  bool registers_undefined() const {
    for (unsigned r = 0; r < op_.registers(); ++r) {
      if (adds_ && undefined(d_slot(r))) return true;
    }
    for (unsigned r = 0; op_.a_in_registers && r < kRegistersOfA; ++r) {
      if (undefined(a_slot_[r])) return true;
    }
    return false;
  }

  // Puts all bits of undefined elements into D.
  void write_undefined() {
    for (unsigned r = 0; op_.a_in_registers && r < kRegistersOfA; ++r) {
      for (unsigned l = 0; l < kLanes; ++l)
        a_.undefined[r % 2 * 8 + l / 4] |= shadow(a_slot_[r]).v[l] != 0;
    }
    for (unsigned r = 0; r < op_.registers(); ++r) {
      Lanes32 bits{};
      for (unsigned l = 0; l < kLanes; ++l) {
        if (op_.half) {
          bits.v[l] = element(r, r / 2, r % 2, l, 0, 0xffffu) |
                      element(r, r / 2, r % 2, l, 1, 0xffff'0000u);
        } else {
          bits.v[l] = element(r, r / 4, r / 2 % 2, l, r % 2, ~0u);
        }
      }
      w_.r32(d_slot(r)) = bits;
    }
  }

  // The mask, if this element of register r is undefined.
  std::uint32_t element(unsigned r, unsigned block, unsigned lower, unsigned lane, unsigned odd,
                        std::uint32_t mask) const {
    const bool any = a_.undefined[lower * 8 + lane / 4] ||
                     b_.undefined[block * 8 + lane % 4 * 2 + odd] ||
                     (adds_ && (shadow(d_slot(r)).v[lane] & mask) != 0);
    return any ? mask : 0;
  }

  WarpRun& w_;
  const Packed op_;
  const std::uint32_t *slot_, *a_slot_ = nullptr, *b_slot_ = nullptr;
  bool adds_ = false;
  Operand<kRows> a_;
  Operand<kMostColumns> b_;
};

void run_product(Warp& warp, const Instr& in) {
  require_full_warp(warp);
  auto& w = run_of(warp);
  if ((w.index | (kWarpgroup - 1)) >= w.block->warps.size()) {
    fail(w, FindingKind::warp_sync, 0,
         "executes a matrix instruction of a warpgroup, but its warpgroup has fewer than four "
         "warps");
  }
  Product(w, in).run();
}

void commit(Warp& w, const Instr&) { run_of(w).products.commit(); }

// --- selection

bool is_literal(const ptx::Operand& o, std::int64_t value) {
  return o.kind == ptx::Operand::Kind::integer && static_cast<std::int64_t>(o.value) == value;
}

bool consistent(TensorType d, TensorType a, TensorType b) {
  switch (a) {
    case f16: return b == f16 && (d == f32 || d == f16);
    case bf16:
    case tf32: return b == a && d == f32;
    case s8:
    case u8: return (b == s8 || b == u8) && d == s32;
    default: return false;
  }
}

// The literals after scale-d: for floating-point numbers imm-scale-a and -b, and for 16 bits
// imm-trans of what is in memory.
void take_literals(const ptx::Instruction& in, Packed& op) {
  std::size_t at = 4;
  const auto next = [&]() -> const ptx::Operand& {
    if (at >= in.operands.size()) refuse_tensor(in, "an unexpected number of operands");
    return in.operands[at++];
  };
  for (unsigned which = 0; bits_of(op.a) != 8 && which < 2; ++which) {
    const ptx::Operand& scale = next();
    if (is_literal(scale, -1)) {
      op.negated = static_cast<std::uint8_t>(op.negated | 1u << which);
    } else if (!is_literal(scale, 1)) {
      refuse_tensor(in, "a scale other than 1 and -1");
    }
  }
  for (unsigned which = op.a_in_registers ? 1 : 0; bits_of(op.a) == 16 && which < 2; ++which) {
    const ptx::Operand& transposed = next();
    if (is_literal(transposed, 1)) {
      op.k_major = static_cast<std::uint8_t>(op.k_major & ~(1u << which));
    } else if (!is_literal(transposed, 0)) {
      refuse_tensor(in, "a transposition other than 0 and 1");
    }
  }
  if (at != in.operands.size()) refuse_tensor(in, "an unexpected number of operands");
}

FlowSelection select_product(const ptx::Instruction& in) {
  Qualifiers q(in);
  q.require("mma_async");
  q.require("sync");
  q.require("aligned");
  if (q.take("sp")) refuse_tensor(in, "sparse matrices are not simulated");
  const MmaShape shape = q.shape();
  const std::vector<TensorType> types = q.types();
  Packed op;
  op.saturate = q.take("satfinite");
  q.end();
  if (types.size() == 3 && (types[1] == e4m3 || types[1] == e5m2))
    refuse_tensor(in, "the precision of its sums is not documented");
  if (types.size() != 3 || in.operands.size() < 4 || !consistent(types[0], types[1], types[2]))
    q.refuse();
  op.a = types[1];
  op.b = types[2];
  op.half = types[0] == f16;
  op.a_in_registers = in.operands[1].kind == ptx::Operand::Kind::vector;
  const bool columns = shape.n % 8 == 0 && shape.n >= 8 && shape.n <= int{kMostColumns};
  if (shape.m != 64 || shape.k != shape_of(op.a).k || !columns || (op.saturate && types[0] != s32))
    q.refuse();
  op.blocks = static_cast<std::uint8_t>(shape.n / 8);
  take_literals(in, op);

  FlowSelection s;
  s.run = run_product;
  s.cls = InstrClass::tensor;
  s.operands = {
      fragment_form(in, 0, static_cast<int>(op.registers()), OperandForm::accumulators32_list),
      op.a_in_registers ? fragment_form(in, 1, kRegistersOfA, OperandForm::src32_list)
                        : OperandForm::src64,
      OperandForm::src64, OperandForm::src_pred};
  s.operands.resize(in.operands.size(), OperandForm::ignored);
  s.uses_extra = true;
  s.rendezvous = true;
  s.mask_operand = 255;
  s.spread = Spread{Spread::Kind::load};
  s.imm = std::bit_cast<std::uint64_t>(op);
  s.tensor_flops = static_cast<std::uint32_t>(2 * int{kRows} * shape.n * shape.k);
  return s;
}

// wgmma.wait_group, and wgmma.fence, which waits for no products.
FlowSelection select_meeting(const ptx::Instruction& in, bool waits) {
  BarrierOp op;
  op.kind = BarrierOp::Kind::warpgroup;
  op.aligned = true;
  op.pending = ~0u;
  FlowSelection s;
  if (waits) {
    if (in.operands.size() != 1 || in.operands[0].kind != ptx::Operand::Kind::integer)
      refuse_tensor(in, "an unexpected operand");
    op.pending = static_cast<std::uint32_t>(in.operands[0].value);
    s.operands = {OperandForm::ignored};
  }
  s.cls = InstrClass::control;
  s.flow = Flow::barrier;
  s.imm = op.encode();
  return s;
}

}  // namespace

std::optional<FlowSelection> select_warpgroup(const ptx::Instruction& in) {
  if (in.opcode != "wgmma" || in.modifiers.empty()) return std::nullopt;
  const std::string& what = in.modifiers.front();
  if (what == "mma_async") return select_product(in);
  if (what == "fence" || what == "wait_group") return select_meeting(in, what == "wait_group");
  if (what != "commit_group") refuse_tensor(in, "this variant is not supported");
  FlowSelection s;
  s.run = commit;
  s.cls = InstrClass::control;
  return s;
}

}  // namespace assay::sim
