// f16 and bf16 arithmetic, scalar and packed (PTX ISA, "Half Precision Floating Point
// Instructions"), rounded once to nearest even.
#include <cmath>

#include "sim/math/approx.h"
#include "sim/math/extreme.h"
#include "sim/math/rounding.h"
#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

struct Mode {
  bool ftz = false, sat = false, relu = false;
};

template <class T, Mode kMode>
[[gnu::always_inline]] inline float input(T x) {
  return widen(kMode.ftz ? flush_half(x) : x);
}
template <class T, Mode kMode>
[[gnu::always_inline]] inline T result(float x) {
  // The bounds are exact in T, so clamping before rounding gives the same result.
  if constexpr (kMode.sat) x = saturate(x);
  if constexpr (kMode.relu) x = relu(x);
  const T out = to_half<T>(x);
  return kMode.ftz ? flush_half(out) : out;
}

// Rounding the float result a second time is harmless: a sum or product in 24 bits determines its
// rounding to 11 or 8 bits (24 >= 2 p + 2, Figueroa 1995). Subnormal results are no exception, as
// they are exact in float or below half of T's least value.
template <class T, Mode kMode>
struct Add {
  [[gnu::always_inline]] static T apply(T a, T b) {
    return result<T, kMode>(input<T, kMode>(a) + input<T, kMode>(b));
  }
};
template <class T, Mode kMode>
struct Sub {
  [[gnu::always_inline]] static T apply(T a, T b) {
    return result<T, kMode>(input<T, kMode>(a) - input<T, kMode>(b));
  }
};
template <class T, Mode kMode>
struct Mul {
  [[gnu::always_inline]] static T apply(T a, T b) {
    return result<T, kMode>(input<T, kMode>(a) * input<T, kMode>(b));
  }
};

// For f16 the product is exact in float, and so is the error of the sum, which suffices to round it
// to odd.
[[gnu::always_inline]] inline float fma_to_odd_half(float a, float b, float c) {
  const float p = a * b;
  const float s = p + c;
  const float cc = s - p;
  const float error = (p - (s - cc)) + (c - cc);
  const auto bits = std::bit_cast<std::uint32_t>(s);
  // One pattern up or down if s is even; unchanged if it is odd, infinite or NaN.
  const std::uint32_t up = ((0 - (bits >> 31)) | 1) & ((bits & 1) - 1);
  return std::bit_cast<float>(bits + select<std::uint32_t>(error > 0, up, 0) -
                              select<std::uint32_t>(error < 0, up, 0));
}
template <class T, Mode kMode>
struct Fma {
  [[gnu::always_inline]] static T apply(T a, T b, T c) {
    const float x = input<T, kMode>(a), y = input<T, kMode>(b), z = input<T, kMode>(c);
    if constexpr (std::is_same_v<T, Half>) return result<T, kMode>(fma_to_odd_half(x, y, z));
    return result<T, kMode>(fma_to_odd(x, y, z));
  }
};

template <class T, Mode kMode>
struct Neg {
  [[gnu::always_inline]] static T apply(T a) {
    return {(kMode.ftz ? flush_half(a) : a).bits ^ 0x8000};
  }
};
template <class T, Mode kMode>
struct Abs {
  [[gnu::always_inline]] static T apply(T a) {
    return {(kMode.ftz ? flush_half(a) : a).bits & 0x7fff};
  }
};

template <class T, bool kMax, bool kNan, bool kXorSign, bool kFtz>
struct Extreme {
  [[gnu::always_inline]] static T apply(T a, T b) {
    const float x = widen(kFtz ? flush_half(a) : a), y = widen(kFtz ? flush_half(b) : b);
    if constexpr (!kXorSign) return to_half<T>(extreme<float, kMax, kNan>(x, y));
    // The signs of NaN operands count as well; x and y have lost them.
    const T magnitude = to_half<T>(extreme<float, kMax, kNan>(std::fabs(x), std::fabs(y)));
    const std::uint32_t sign = (a.bits ^ b.bits) & 0x8000;
    return {select(magnitude.bits > T::Bits::infinity, magnitude.bits, magnitude.bits | sign)};
  }
};

// The documented errors, 2^-9.9 and 2^-10.987 for f16, 2^-7 and 2^-8 for bf16, exceed half a unit
// in the last place of T.
template <class T, Mode kMode>
struct Ex2 {
  [[gnu::always_inline]] static T apply(T a) {
    return result<T, kMode>(approx::ex2(input<T, kMode>(a)));
  }
};
template <class T, Mode kMode>
struct Tanh {
  [[gnu::always_inline]] static T apply(T a) {
    return result<T, kMode>(approx::tanh(input<T, kMode>(a)));
  }
};

// Selection.

template <class Op>
Selection scalar_or_packed(bool packed, InstrClass cls = InstrClass::fp16) {
  return packed ? lanewise<Packed<Op>>(cls) : lanewise<Op>(cls);
}

struct Request {
  bool bfloat, packed, ftz;
};

// Without flags; .ftz only for f16.
template <template <class, Mode> class Op>
Selection plain(Request r, InstrClass cls = InstrClass::fp16) {
  constexpr Mode kPlain{}, kFtz{.ftz = true};
  if (r.bfloat) {
    return r.ftz ? Selection{} : scalar_or_packed<Op<Bfloat, kPlain>>(r.packed, cls);
  }
  return r.ftz ? scalar_or_packed<Op<Half, kFtz>>(r.packed, cls)
               : scalar_or_packed<Op<Half, kPlain>>(r.packed, cls);
}
template <template <class, Mode> class Op>
Selection saturating(Request r, bool sat) {
  if (!sat) return plain<Op>(r);
  if (r.bfloat) return {};
  constexpr Mode kSat{.sat = true}, kSatFtz{.ftz = true, .sat = true};
  return r.ftz ? scalar_or_packed<Op<Half, kSatFtz>>(r.packed)
               : scalar_or_packed<Op<Half, kSat>>(r.packed);
}
Selection select_fma(Request r, bool sat, bool relu) {
  if (!relu) return saturating<Fma>(r, sat);
  constexpr Mode kRelu{.relu = true}, kReluFtz{.ftz = true, .relu = true};
  if (sat || (r.bfloat && r.ftz)) return {};
  if (r.bfloat) return scalar_or_packed<Fma<Bfloat, kRelu>>(r.packed);
  return r.ftz ? scalar_or_packed<Fma<Half, kReluFtz>>(r.packed)
               : scalar_or_packed<Fma<Half, kRelu>>(r.packed);
}

template <class T, bool kMax, bool kFtz>
Selection select_extreme(Modifiers& m, bool packed) {
  const bool nan = m.take("NaN"), xor_sign = m.take("xorsign");
  if (xor_sign != m.take("abs")) return {};
  if (xor_sign) {
    return nan ? scalar_or_packed<Extreme<T, kMax, true, true, kFtz>>(packed)
               : scalar_or_packed<Extreme<T, kMax, false, true, kFtz>>(packed);
  }
  return nan ? scalar_or_packed<Extreme<T, kMax, true, false, kFtz>>(packed)
             : scalar_or_packed<Extreme<T, kMax, false, false, kFtz>>(packed);
}
template <bool kMax>
Selection select_extreme(Modifiers& m, Request r) {
  if (r.bfloat) return r.ftz ? Selection{} : select_extreme<Bfloat, kMax, false>(m, r.packed);
  return r.ftz ? select_extreme<Half, kMax, true>(m, r.packed)
               : select_extreme<Half, kMax, false>(m, r.packed);
}

}  // namespace

std::optional<Selection> select_half(Modifiers& m) {
  const AluType type = m.type();
  Request r{};
  r.bfloat = type == AluType::bf16 || type == AluType::bf16x2;
  r.packed = type == AluType::f16x2 || type == AluType::bf16x2;
  if (!r.bfloat && type != AluType::f16 && type != AluType::f16x2) return std::nullopt;
  r.ftz = m.take("ftz");

  const std::string_view op = m.opcode();
  if (op == "add" || op == "sub" || op == "mul" || op == "fma") {
    const bool rounded = m.take("rn");  // the default but for fma
    const bool sat = m.take("sat");
    if (op == "add") return m.finish(saturating<Add>(r, sat));
    if (op == "sub") return m.finish(saturating<Sub>(r, sat));
    if (op == "mul") return m.finish(saturating<Mul>(r, sat));
    if (!rounded) return std::nullopt;
    return m.finish(select_fma(r, sat, m.take("relu")));
  }
  if (op == "neg") return m.finish(plain<Neg>(r));
  if (op == "abs") return m.finish(plain<Abs>(r));
  if (op == "min") return m.finish(select_extreme<false>(m, r));
  if (op == "max") return m.finish(select_extreme<true>(m, r));
  if (op == "tanh" && m.take("approx") && !r.ftz) {
    return m.finish(plain<Tanh>(r, InstrClass::special));
  }
  // ex2.ftz.bf16 is the only form for bf16. A subnormal gives 1 either way.
  if (op == "ex2" && m.take("approx") && (r.ftz || !r.bfloat)) {
    constexpr Mode kFtz{.ftz = true};
    if (!r.bfloat) return m.finish(plain<Ex2>(r, InstrClass::special));
    return m.finish(scalar_or_packed<Ex2<Bfloat, kFtz>>(r.packed, InstrClass::special));
  }
  return std::nullopt;
}

}  // namespace assay::sim
