// Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions").
//
// Division by zero gives all ones, quotient and remainder, signed or not: PTX leaves it open, and
// this is what the code does that ptxas generates. The most negative value divided by -1 is itself,
// with remainder 0.
#include <cmath>
#include <limits>

#include "sim/math/convert.h"
#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

using std::int16_t, std::int32_t, std::int64_t, std::uint16_t, std::uint32_t, std::uint64_t;

// An unsigned type to compute in, where overflow is defined: not narrower than int, which 16-bit
// operands would be promoted to.
template <class T>
using Wrap = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
struct WiderOf;
template <>
struct WiderOf<uint16_t> {
  using Type = uint32_t;
};
template <>
struct WiderOf<int16_t> {
  using Type = int32_t;
};
template <>
struct WiderOf<uint32_t> {
  using Type = uint64_t;
};
template <>
struct WiderOf<int32_t> {
  using Type = int64_t;
};
template <>
struct WiderOf<uint64_t> {
  using Type = unsigned __int128;
};
template <>
struct WiderOf<int64_t> {
  using Type = __int128;
};
template <class T>
using Wider = typename WiderOf<T>::Type;

template <class T>
struct Add {
  static T apply(T a, T b) { return static_cast<T>(Wrap<T>(a) + Wrap<T>(b)); }
};
template <class T>
struct Sub {
  static T apply(T a, T b) { return static_cast<T>(Wrap<T>(a) - Wrap<T>(b)); }
};
struct AddSat {
  static int32_t apply(int32_t a, int32_t b) { return clamp_integer<int32_t>(int64_t{a} + b); }
};
struct SubSat {
  static int32_t apply(int32_t a, int32_t b) { return clamp_integer<int32_t>(int64_t{a} - b); }
};

template <class T>
[[gnu::always_inline]] inline T high_product(T a, T b) {
  return static_cast<T>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b) >> sizeof(T) * 8);
}

template <class T>
struct MulLo {
  static T apply(T a, T b) { return static_cast<T>(Wrap<T>(a) * Wrap<T>(b)); }
};
template <class T>
struct MulHi {
  static T apply(T a, T b) { return high_product(a, b); }
};
template <class T>
struct MulWide {
  static Wider<T> apply(T a, T b) { return static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b); }
};
template <class T>
struct MadLo {
  static T apply(T a, T b, T c) { return Add<T>::apply(MulLo<T>::apply(a, b), c); }
};
template <class T>
struct MadHi {
  static T apply(T a, T b, T c) { return Add<T>::apply(high_product(a, b), c); }
};
struct MadHiSat {
  static int32_t apply(int32_t a, int32_t b, int32_t c) {
    return AddSat::apply(high_product(a, b), c);
  }
};
template <class T>
struct MadWide {
  static Wider<T> apply(T a, T b, Wider<T> c) {
    return Add<Wider<T>>::apply(MulWide<T>::apply(a, b), c);
  }
};

// The product of the low 24 bits of both.
[[gnu::always_inline]] inline uint64_t product24(uint32_t a, uint32_t b) {
  return uint64_t{a & 0xffffff} * (b & 0xffffff);
}
[[gnu::always_inline]] inline int64_t product24(int32_t a, int32_t b) {
  const auto extend = [](int32_t x) { return static_cast<int32_t>(uint32_t(x) << 8) >> 8; };
  return int64_t{extend(a)} * extend(b);
}
template <class T>
struct Mul24Lo {
  static T apply(T a, T b) { return static_cast<T>(product24(a, b)); }
};
template <class T>
struct Mul24Hi {
  static T apply(T a, T b) { return static_cast<T>(product24(a, b) >> 16); }
};
template <class T>
struct Mad24Lo {
  static T apply(T a, T b, T c) { return Add<T>::apply(Mul24Lo<T>::apply(a, b), c); }
};
template <class T>
struct Mad24Hi {
  static T apply(T a, T b, T c) { return Add<T>::apply(Mul24Hi<T>::apply(a, b), c); }
};
struct Mad24HiSat {
  static int32_t apply(int32_t a, int32_t b, int32_t c) {
    return AddSat::apply(Mul24Hi<int32_t>::apply(a, b), c);
  }
};

template <class T>
struct Sad {
  static T apply(T a, T b, T c) {
    const Wrap<T> distance = a < b ? Wrap<T>(b) - Wrap<T>(a) : Wrap<T>(a) - Wrap<T>(b);
    return static_cast<T>(Wrap<T>(c) + distance);
  }
};

template <class T>
struct Div {
  [[gnu::always_inline]] static T apply(T a, T b) {
    const T divisor = select<T>(b == 0, 1, b);
    if constexpr (sizeof(T) < 8) {
      // A quotient below an integer is below it by at least 2^-32 of itself: double's rounding
      // cannot reach it. Adding 1.5 * 2^52 leaves the integer in the low bits, in two's complement.
      const double quotient = std::trunc(static_cast<double>(a) / static_cast<double>(divisor));
      const auto low = static_cast<uint32_t>(std::bit_cast<uint64_t>(quotient + 0x1.8p52));
      return static_cast<T>(select(b == 0, ~uint32_t{0}, low));
    } else if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(-static_cast<uint64_t>(a));
      return b == 0 ? T{-1} : a / divisor;
    } else {
      return b == 0 ? ~T{0} : a / divisor;
    }
  }
};
template <class T>
struct Rem {
  [[gnu::always_inline]] static T apply(T a, T b) {
    const T quotient = Div<T>::apply(a, b);
    const T rest = static_cast<T>(Wrap<T>(a) - Wrap<T>(quotient) * Wrap<T>(b));
    return select<T>(b == 0, static_cast<T>(-1), rest);
  }
};

template <class T>
struct Abs {
  static T apply(T a) { return static_cast<T>(a < 0 ? Wrap<T>(0) - Wrap<T>(a) : Wrap<T>(a)); }
};
template <class T>
struct Neg {
  static T apply(T a) { return static_cast<T>(Wrap<T>(0) - Wrap<T>(a)); }
};
template <class T>
struct Min {
  static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max {
  static T apply(T a, T b) { return a > b ? a : b; }
};
template <class Op>
struct Relu;
template <template <class> class Op, class T>
struct Relu<Op<T>> {
  static T apply(T a, T b) { return Max<T>::apply(Op<T>::apply(a, b), 0); }
};

// T is the type of element i of a register, sign- or zero-extended.
template <class T>
[[gnu::always_inline]] inline uint32_t element(uint32_t bits, int i) {
  const auto value = static_cast<T>(bits >> i * static_cast<int>(sizeof(T) * 8));
  return static_cast<uint32_t>(static_cast<int32_t>(value));
}
template <class A, class B>
struct Dp4a {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    return c + element<A>(a, 0) * element<B>(b, 0) + element<A>(a, 1) * element<B>(b, 1) +
           element<A>(a, 2) * element<B>(b, 2) + element<A>(a, 3) * element<B>(b, 3);
  }
};
template <class A, class B, int kFirst>
struct Dp2a {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    return c + element<A>(a, 0) * element<B>(b, kFirst) +
           element<A>(a, 1) * element<B>(b, kFirst + 1);
  }
};

constexpr InstrClass kClass = InstrClass::integer;

// The half of the product that `mul` and `mad` give.
enum class Part : std::uint8_t { none, lo, hi, wide };

Part take_part(Modifiers& m) {
  if (m.take("lo")) return Part::lo;
  if (m.take("hi")) return Part::hi;
  if (m.take("wide")) return Part::wide;
  return Part::none;
}

template <template <class> class Op>
Selection lanewise_widening(AluType type) {
  switch (type) {
    case AluType::u16: return lanewise<Op<uint16_t>>(kClass);
    case AluType::s16: return lanewise<Op<int16_t>>(kClass);
    case AluType::u32: return lanewise<Op<uint32_t>>(kClass);
    case AluType::s32: return lanewise<Op<int32_t>>(kClass);
    default: return {};
  }
}

template <template <class> class Op>
Selection lanewise_32(AluType type) {
  switch (type) {
    case AluType::u32: return lanewise<Op<uint32_t>>(kClass);
    case AluType::s32: return lanewise<Op<int32_t>>(kClass);
    default: return {};
  }
}

template <template <class> class Op>
Selection lanewise_signed(AluType type) {
  switch (type) {
    case AluType::s16: return lanewise<Op<int16_t>>(kClass);
    case AluType::s32: return lanewise<Op<int32_t>>(kClass);
    case AluType::s64: return lanewise<Op<int64_t>>(kClass);
    default: return {};
  }
}

template <template <class> class Op>
Selection lanewise_packed(AluType type) {
  if (type == AluType::u16x2) return lanewise<Packed<Op<uint16_t>>>(kClass);
  return lanewise<Packed<Op<int16_t>>>(kClass);
}

template <template <class> class Op>
Selection select_min_max(Modifiers& m) {
  const AluType type = m.type();
  if (m.take("relu")) {
    if (type == AluType::s32) return lanewise<Relu<Op<int32_t>>>(kClass);
    if (type == AluType::s16x2) return lanewise<Packed<Relu<Op<int16_t>>>>(kClass);
    return {};
  }
  return is_integer(type) ? lanewise_integer<Op>(type) : lanewise_packed<Op>(type);
}

Selection select_product(Modifiers& m, bool mad) {
  const AluType type = m.type();
  switch (take_part(m)) {
    case Part::lo: return mad ? lanewise_integer<MadLo>(type) : lanewise_integer<MulLo>(type);
    case Part::hi:
      if (mad && type == AluType::s32 && m.take("sat")) return lanewise<MadHiSat>(kClass);
      return mad ? lanewise_integer<MadHi>(type) : lanewise_integer<MulHi>(type);
    case Part::wide:
      return mad ? lanewise_widening<MadWide>(type) : lanewise_widening<MulWide>(type);
    default: return {};
  }
}

Selection select_product24(Modifiers& m, bool mad) {
  const AluType type = m.type();
  switch (take_part(m)) {
    case Part::lo: return mad ? lanewise_32<Mad24Lo>(type) : lanewise_32<Mul24Lo>(type);
    case Part::hi:
      if (mad && type == AluType::s32 && m.take("sat")) return lanewise<Mad24HiSat>(kClass);
      return mad ? lanewise_32<Mad24Hi>(type) : lanewise_32<Mul24Hi>(type);
    default: return {};
  }
}

template <class A8, class A16, class B>
Selection select_dot(Modifiers& m) {
  if (m.opcode() == "dp4a") return lanewise<Dp4a<A8, B>>(kClass);
  if (m.take("lo")) return lanewise<Dp2a<A16, B, 0>>(kClass);
  if (m.take("hi")) return lanewise<Dp2a<A16, B, 2>>(kClass);
  return {};
}

Selection select_dot(Modifiers& m) {
  using std::int8_t, std::uint8_t;
  for (const std::size_t i : {0, 1}) {
    if (m.type(i) != AluType::u32 && m.type(i) != AluType::s32) m.unsupported();
  }
  if (is_signed(m.type(0))) {
    return is_signed(m.type(1)) ? select_dot<int8_t, int16_t, int8_t>(m)
                                : select_dot<int8_t, int16_t, uint8_t>(m);
  }
  return is_signed(m.type(1)) ? select_dot<uint8_t, uint16_t, int8_t>(m)
                              : select_dot<uint8_t, uint16_t, uint8_t>(m);
}

}  // namespace

std::optional<Selection> select_integer(Modifiers& m) {
  const std::string_view op = m.opcode();
  const AluType type = m.type();
  if (op == "dp4a" || op == "dp2a") return m.finish(select_dot(m), 2);
  const bool packed = type == AluType::u16x2 || type == AluType::s16x2;
  if (!is_integer(type) && !packed) return std::nullopt;

  Selection s;
  if (op == "add") {
    if (packed) {
      s = lanewise_packed<Add>(type);
    } else if (type == AluType::s32 && m.take("sat")) {
      s = lanewise<AddSat>(kClass);
    } else {
      s = lanewise_integer<Add>(type);
    }
  } else if (op == "sub") {
    s = type == AluType::s32 && m.take("sat") ? lanewise<SubSat>(kClass)
                                              : lanewise_integer<Sub>(type);
  } else if (op == "mul" || op == "mad") {
    s = select_product(m, op == "mad");
  } else if (op == "mul24" || op == "mad24") {
    s = select_product24(m, op == "mad24");
  } else if (op == "sad") {
    s = lanewise_integer<Sad>(type);
  } else if (op == "div") {
    s = lanewise_integer<Div>(type);
  } else if (op == "rem") {
    s = lanewise_integer<Rem>(type);
  } else if (op == "abs") {
    s = lanewise_signed<Abs>(type);
  } else if (op == "neg") {
    s = lanewise_signed<Neg>(type);
  } else if (op == "min") {
    s = select_min_max<Min>(m);
  } else if (op == "max") {
    s = select_min_max<Max>(m);
  } else {
    return std::nullopt;
  }
  return m.finish(s);
}

}  // namespace assay::sim
