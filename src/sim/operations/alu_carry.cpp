// Extended-precision arithmetic: instructions that read or write the carry flag CC.CF (PTX ISA,
// "Extended-Precision Integer Arithmetic Instructions"). After a subtraction the flag is the
// borrow.
#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

enum class CarryOp : std::uint8_t { add, sub, mad_lo, mad_hi };

template <class T>
using Product = std::conditional_t<sizeof(T) == 8, __int128, std::int64_t>;
template <class T>
using UnsignedProduct = std::conditional_t<sizeof(T) == 8, unsigned __int128, std::uint64_t>;

// The half of the product that a mad adds. Only the upper half depends on the type's signedness.
template <class T, CarryOp kOp>
[[gnu::always_inline]] inline std::make_unsigned_t<T> product(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if constexpr (kOp == CarryOp::mad_lo) {
    return static_cast<U>(a) * static_cast<U>(b);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<U>(static_cast<Product<T>>(a) * b >> sizeof(T) * 8);
  } else {
    return static_cast<U>(static_cast<UnsignedProduct<T>>(a) * b >> sizeof(T) * 8);
  }
}

template <class T, CarryOp kOp, bool kIn, bool kOut>
void run(Warp& w, const Instr& in) {
  using U = std::make_unsigned_t<T>;
  constexpr bool kMad = kOp == CarryOp::mad_lo || kOp == CarryOp::mad_hi;
  const Source<T> a(w, in, in.a), b(w, in, in.b), c(w, in, in.c);
  std::conditional_t<sizeof(T) == 8, Lanes64, Lanes32> out;
  Lanes32 carry_out;
#pragma omp simd
  for (int l = 0; l < 32; ++l) {
    const U carry = kIn ? w.carry.v[l] : 0;
    U x = 0, y = 0;
    if constexpr (kMad) {
      x = product<T, kOp>(a[l], b[l]);
      y = static_cast<U>(c[l]);
    } else {
      x = static_cast<U>(a[l]);
      y = static_cast<U>(b[l]);
    }
    if constexpr (kOp == CarryOp::sub) {
      const U partial = x - y;
      out.v[l] = partial - carry;
      carry_out.v[l] = (x < y ? 1 : 0) | (partial < carry ? 1 : 0);
    } else {
      const U partial = x + y;
      const U sum = partial + carry;
      out.v[l] = sum;
      carry_out.v[l] = (partial < x ? 1 : 0) | (sum < partial ? 1 : 0);
    }
  }
  write_active(w, in.d, out);
  if constexpr (kOut) {
#pragma omp simd
    for (int l = 0; l < 32; ++l) {
      w.carry.v[l] = blend(w.lane_mask.v[l], carry_out.v[l], w.carry.v[l]);
    }
  }
}

template <class T, CarryOp kOp>
Handler handler(bool in, bool out) {
  if (in) return out ? &run<T, kOp, true, true> : &run<T, kOp, true, false>;
  return out ? &run<T, kOp, false, true> : nullptr;
}

template <CarryOp kOp>
Handler handler(AluType type, bool in, bool out) {
  switch (type) {
    case AluType::u32: return handler<std::uint32_t, kOp>(in, out);
    case AluType::s32: return handler<std::int32_t, kOp>(in, out);
    case AluType::u64: return handler<std::uint64_t, kOp>(in, out);
    case AluType::s64: return handler<std::int64_t, kOp>(in, out);
    default: return nullptr;
  }
}

}  // namespace

std::optional<Selection> select_carry(Modifiers& m) {
  const std::string_view op = m.opcode();
  const bool in = op == "addc" || op == "subc" || op == "madc";
  if (!in && op != "add" && op != "sub" && op != "mad") return std::nullopt;
  const bool out = m.take("cc");
  if (!in && !out) return std::nullopt;

  Selection s;
  s.cls = InstrClass::integer;
  const bool wide = bits_of(m.type()) == 64;
  const OperandForm source = wide ? OperandForm::src64 : OperandForm::src32;
  s.operands = {wide ? OperandForm::dst64 : OperandForm::dst32, source, source};
  if (op.starts_with("add")) {
    s.run = handler<CarryOp::add>(m.type(), in, out);
  } else if (op.starts_with("sub")) {
    s.run = handler<CarryOp::sub>(m.type(), in, out);
  } else {
    s.operands.push_back(source);
    if (m.take("lo")) {
      s.run = handler<CarryOp::mad_lo>(m.type(), in, out);
    } else if (m.take("hi")) {
      s.run = handler<CarryOp::mad_hi>(m.type(), in, out);
    }
  }
  return m.finish(s);
}

}  // namespace assay::sim
