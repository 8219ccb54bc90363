// Correctly rounded f32 and f64 arithmetic, and operations on signs only (PTX ISA, "Floating Point
// Instructions").
//
// Counting: add, sub and mul of f32 are one flop per lane, fma and mad two, everything else none.
// Division, reciprocal and root in an IEEE rounding mode belong to class fp32 or fp64 (hardware
// runs a sequence of fma), the approximate forms (alu_special.cpp) to class special.
#include <cmath>

#include "sim/math/extreme.h"
#include "sim/math/rounding.h"
#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {
namespace {

// The modifiers' effect on operands and result.
struct Mode {
  Rounding rounding = Rounding::nearest_even;
  bool ftz = false, sat = false;
};

template <Mode kMode>
[[gnu::always_inline]] inline float input(float x) {
  return kMode.ftz ? flush(x) : x;
}
template <Mode kMode>
[[gnu::always_inline]] inline float result(float x) {
  if constexpr (kMode.sat) return saturate(kMode.ftz ? flush(x) : x);
  return canonical(kMode.ftz ? flush(x) : x);
}

template <Mode kMode>
struct Add {
  [[gnu::always_inline]] static float apply(float a, float b) {
    return result<kMode>(add<kMode.rounding>(input<kMode>(a), input<kMode>(b)));
  }
};
template <Mode kMode>
struct Sub {
  [[gnu::always_inline]] static float apply(float a, float b) {
    return result<kMode>(add<kMode.rounding>(input<kMode>(a), -input<kMode>(b)));
  }
};
template <Mode kMode>
struct Mul {
  [[gnu::always_inline]] static float apply(float a, float b) {
    return result<kMode>(mul<kMode.rounding>(input<kMode>(a), input<kMode>(b)));
  }
};
template <Mode kMode>
struct Fma {
  [[gnu::always_inline]] static float apply(float a, float b, float c) {
    return result<kMode>(fma<kMode.rounding>(input<kMode>(a), input<kMode>(b), input<kMode>(c)));
  }
};

// Whether std::fma is an instruction, not a function call.
#if defined(__FMA__)
constexpr bool kHostFma = true;
#else
constexpr bool kHostFma = false;
#endif

// The directed modes. expf() adds a large constant to round by fma.rm: there, c minus the nearest
// result is a float, and one more fma gives the exact error of that result. All lanes are done this
// way, and once more in double if one of them does not qualify.
template <Mode kMode>
requires(kHostFma&& kMode.rounding != Rounding::nearest_even) struct Fma<kMode> {
  [[gnu::always_inline]] static float apply(float a, float b, float c) {
    return result<kMode>(fma<kMode.rounding>(input<kMode>(a), input<kMode>(b), input<kMode>(c)));
  }

  static void run(Warp& w, const Instr& in) {
    const Source<float> a(w, in, in.a), b(w, in, in.b), c(w, in, in.c);
    Lanes32 out;
    std::uint32_t others = 0;
#pragma omp simd reduction(| : others)
    for (int l = 0; l < 32; ++l) {
      const float x = input<kMode>(a[l]), y = input<kMode>(b[l]), z = input<kMode>(c[l]);
      const float nearest = std::fma(x, y, z), product = x * y;
      const float rest = z - nearest;
      // Exact if both hold: an error of `rest` would be at least a unit of z or of `nearest`.
      const bool exact = (rest + nearest == z) & (z - rest == nearest);
      // Far from where the product's last bits underflow.
      const bool normal = (std::fabs(product) >= 0x1p-60f) | (x == 0) | (y == 0);
      others |= select<std::uint32_t>(exact & normal, 0, w.lane_mask.v[l]);
      const float error = std::fma(x, y, rest);
      const bool above = error<0, below = error> 0;  // where `nearest` lies
      float r = step<kMode.rounding>(nearest, above, below);
      if constexpr (kMode.rounding == Rounding::down) {
        const auto sign = [](float f) { return std::bit_cast<std::uint32_t>(f); };
        r = select(nearest == 0, zero_sum_down(sign(x) ^ sign(y), sign(z)), r);
      }
      out.v[l] = to_lane(result<kMode>(r));
    }
    if (others != 0) {
#pragma omp simd
      for (int l = 0; l < 32; ++l) out.v[l] = to_lane(apply(a[l], b[l], c[l]));
    }
    write_active(w, in.d, out);
  }
};

template <Mode kMode>
struct Div {
  [[gnu::always_inline]] static float apply(float a, float b) {
    return result<kMode>(div<kMode.rounding>(input<kMode>(a), input<kMode>(b)));
  }
};
template <Mode kMode>
struct Rcp {
  [[gnu::always_inline]] static float apply(float a) {
    return result<kMode>(div<kMode.rounding>(1.0f, input<kMode>(a)));
  }
};
template <Mode kMode>
struct Sqrt {
  [[gnu::always_inline]] static float apply(float a) {
    return result<kMode>(sqrt<kMode.rounding>(input<kMode>(a)));
  }
};

// Operations on signs. NaN keeps its payload.
template <Mode kMode>
struct Neg {
  static float apply(float a) { return -input<kMode>(a); }
};
template <Mode kMode>
struct Abs {
  static float apply(float a) { return std::fabs(input<kMode>(a)); }
};
struct Neg64 {
  static double apply(double a) { return -a; }
};
struct Abs64 {
  static double apply(double a) { return std::fabs(a); }
};
template <class T>
struct Copysign {  // the sign of a on the value of b
  static T apply(T a, T b) {
    constexpr T kSign = T{1} << (sizeof(T) * 8 - 1);
    return (a & kSign) | (b & ~kSign);
  }
};

template <bool kMax, bool kNan, bool kXorSign, bool kFtz>
struct Extreme {
  [[gnu::always_inline]] static float apply(float a, float b) {
    constexpr Mode kMode{.ftz = kFtz};
    a = input<kMode>(a), b = input<kMode>(b);
    if constexpr (kXorSign) return extreme_xorsign<kMax, kNan>(a, b);
    return extreme<float, kMax, kNan>(a, b);
  }
};
template <bool kMax>
struct Extreme64 {
  [[gnu::always_inline]] static double apply(double a, double b) {
    return extreme<double, kMax, false>(a, b);
  }
};

// f64, to nearest.
struct Add64 {
  static double apply(double a, double b) { return canonical(a + b); }
};
struct Sub64 {
  static double apply(double a, double b) { return canonical(a - b); }
};
struct Mul64 {
  static double apply(double a, double b) { return canonical(a * b); }
};
struct Fma64 {
  static double apply(double a, double b, double c) { return canonical(std::fma(a, b, c)); }
};
struct Div64 {
  static double apply(double a, double b) { return canonical(a / b); }
};
struct Rcp64 {
  static double apply(double a) { return canonical(1.0 / a); }
};
struct Sqrt64 {
  static double apply(double a) { return canonical(std::sqrt(a)); }
};

// f64, in the rounding mode in Instr::imm.
struct Reals {
  alignas(64) double v[32];
  void load(Warp& w, std::uint32_t slot) {
    for (int l = 0; l < 32; ++l) v[l] = std::bit_cast<double>(w.r64(slot).v[l]);
  }
  void store(Warp& w, std::uint32_t slot) const {
    Lanes64 out;
    for (int l = 0; l < 32; ++l) out.v[l] = std::bit_cast<std::uint64_t>(canonical(v[l]));
    write_active(w, slot, out);
  }
};

template <void (*kFunction)(Rounding, const double*, double*, int)>
void directed_1(Warp& w, const Instr& in) {
  Reals a;
  a.load(w, in.a);
  kFunction(static_cast<Rounding>(in.imm), a.v, a.v, 32);
  a.store(w, in.d);
}
template <void (*kFunction)(Rounding, const double*, const double*, double*, int)>
void directed_2(Warp& w, const Instr& in) {
  Reals a, b;
  a.load(w, in.a);
  b.load(w, in.b);
  kFunction(static_cast<Rounding>(in.imm), a.v, b.v, a.v, 32);
  a.store(w, in.d);
}
void directed_fma(Warp& w, const Instr& in) {
  Reals a, b, c;
  a.load(w, in.a);
  b.load(w, in.b);
  c.load(w, in.c);
  fma_f64(static_cast<Rounding>(in.imm), a.v, b.v, c.v, a.v, 32);
  a.store(w, in.d);
}
void sub_f64(Rounding rounding, const double* a, const double* b, double* out, int n) {
  double negated[32];
  for (int l = 0; l < n; ++l) negated[l] = -b[l];
  add_f64(rounding, a, negated, out, n);
}
void rcp_f64(Rounding rounding, const double* a, double* out, int n) {
  double ones[32];
  for (int l = 0; l < n; ++l) ones[l] = 1;
  div_f64(rounding, ones, a, out, n);
}

// Selection.

template <template <Mode> class Op, Rounding kRounding>
Selection with_flags(bool ftz, bool sat, int flops) {
  constexpr InstrClass kClass = InstrClass::fp32;
  if (ftz && sat) return lanewise<Op<Mode{kRounding, true, true}>>(kClass, flops);
  if (ftz) return lanewise<Op<Mode{kRounding, true, false}>>(kClass, flops);
  if (sat) return lanewise<Op<Mode{kRounding, false, true}>>(kClass, flops);
  return lanewise<Op<Mode{kRounding, false, false}>>(kClass, flops);
}
template <template <Mode> class Op>
Selection select_f32(Modifiers& m, Rounding rounding, int flops) {
  const bool ftz = m.take("ftz"), sat = m.take("sat");
  switch (rounding) {
    case Rounding::nearest_even: return with_flags<Op, Rounding::nearest_even>(ftz, sat, flops);
    case Rounding::toward_zero: return with_flags<Op, Rounding::toward_zero>(ftz, sat, flops);
    case Rounding::down: return with_flags<Op, Rounding::down>(ftz, sat, flops);
    case Rounding::up: return with_flags<Op, Rounding::up>(ftz, sat, flops);
    default: return {};
  }
}
// Division and similar operations have no .sat.
template <template <Mode> class Op>
Selection select_f32_unsaturated(Modifiers& m, Rounding rounding) {
  const bool ftz = m.take("ftz");
  constexpr InstrClass kClass = InstrClass::fp32;
  switch (rounding) {
    case Rounding::nearest_even:
      return ftz ? lanewise<Op<Mode{Rounding::nearest_even, true, false}>>(kClass)
                 : lanewise<Op<Mode{Rounding::nearest_even, false, false}>>(kClass);
    case Rounding::toward_zero:
      return ftz ? lanewise<Op<Mode{Rounding::toward_zero, true, false}>>(kClass)
                 : lanewise<Op<Mode{Rounding::toward_zero, false, false}>>(kClass);
    case Rounding::down:
      return ftz ? lanewise<Op<Mode{Rounding::down, true, false}>>(kClass)
                 : lanewise<Op<Mode{Rounding::down, false, false}>>(kClass);
    case Rounding::up:
      return ftz ? lanewise<Op<Mode{Rounding::up, true, false}>>(kClass)
                 : lanewise<Op<Mode{Rounding::up, false, false}>>(kClass);
    default: return {};
  }
}
template <template <Mode> class Op>
Selection select_sign(Modifiers& m) {
  return m.take("ftz") ? lanewise<Op<Mode{.ftz = true}>>(InstrClass::fp32)
                       : lanewise<Op<Mode{}>>(InstrClass::fp32);
}

template <bool kMax>
Selection select_extreme(Modifiers& m) {
  constexpr InstrClass kClass = InstrClass::fp32;
  const bool ftz = m.take("ftz"), nan = m.take("NaN"), xor_sign = m.take("xorsign");
  if (xor_sign != m.take("abs")) return {};
  switch ((ftz ? 1 : 0) | (nan ? 2 : 0) | (xor_sign ? 4 : 0)) {
    case 0: return lanewise<Extreme<kMax, false, false, false>>(kClass);
    case 1: return lanewise<Extreme<kMax, false, false, true>>(kClass);
    case 2: return lanewise<Extreme<kMax, true, false, false>>(kClass);
    case 3: return lanewise<Extreme<kMax, true, false, true>>(kClass);
    case 4: return lanewise<Extreme<kMax, false, true, false>>(kClass);
    case 5: return lanewise<Extreme<kMax, false, true, true>>(kClass);
    case 6: return lanewise<Extreme<kMax, true, true, false>>(kClass);
    default: return lanewise<Extreme<kMax, true, true, true>>(kClass);
  }
}

// The operation rounded to nearest, or its handler for the other modes, which has the same
// operands.
template <class Nearest>
Selection select_f64(Rounding rounding, Handler directed) {
  Selection s = lanewise<Nearest>(InstrClass::fp64);
  if (rounding != Rounding::nearest_even) {
    s.run = directed;
    s.imm = static_cast<std::uint64_t>(rounding);
  }
  return s;
}

std::optional<Selection> select_arithmetic(Modifiers& m, bool wide, Rounding rounding) {
  const std::string_view op = m.opcode();
  if (op == "add") {
    return wide ? select_f64<Add64>(rounding, &directed_2<add_f64>)
                : select_f32<Add>(m, rounding, 1);
  }
  if (op == "sub") {
    return wide ? select_f64<Sub64>(rounding, &directed_2<sub_f64>)
                : select_f32<Sub>(m, rounding, 1);
  }
  if (op == "mul") {
    return wide ? select_f64<Mul64>(rounding, &directed_2<mul_f64>)
                : select_f32<Mul>(m, rounding, 1);
  }
  if (op == "fma" || op == "mad") {  // mad is another name
    return wide ? select_f64<Fma64>(rounding, &directed_fma) : select_f32<Fma>(m, rounding, 2);
  }
  return std::nullopt;
}

std::optional<Selection> select_division(Modifiers& m, bool wide, Rounding rounding) {
  const std::string_view op = m.opcode();
  if (op == "div") {
    return wide ? select_f64<Div64>(rounding, &directed_2<div_f64>)
                : select_f32_unsaturated<Div>(m, rounding);
  }
  if (op == "rcp") {
    return wide ? select_f64<Rcp64>(rounding, &directed_1<rcp_f64>)
                : select_f32_unsaturated<Rcp>(m, rounding);
  }
  if (op == "sqrt") {
    return wide ? select_f64<Sqrt64>(rounding, &directed_1<sqrt_f64>)
                : select_f32_unsaturated<Sqrt>(m, rounding);
  }
  return std::nullopt;
}

std::optional<Selection> select_signs(Modifiers& m, bool wide) {
  const std::string_view op = m.opcode();
  if (op == "neg") return wide ? lanewise<Neg64>(InstrClass::fp64) : select_sign<Neg>(m);
  if (op == "abs") return wide ? lanewise<Abs64>(InstrClass::fp64) : select_sign<Abs>(m);
  if (op == "copysign") {
    return wide ? lanewise<Copysign<std::uint64_t>>(InstrClass::fp64)
                : lanewise<Copysign<std::uint32_t>>(InstrClass::fp32);
  }
  if (op == "min") {
    return wide ? lanewise<Extreme64<false>>(InstrClass::fp64) : select_extreme<false>(m);
  }
  if (op == "max") {
    return wide ? lanewise<Extreme64<true>>(InstrClass::fp64) : select_extreme<true>(m);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Selection> select_float(Modifiers& m) {
  if (m.type() != AluType::f32 && m.type() != AluType::f64) return std::nullopt;
  const bool wide = m.type() == AluType::f64;
  if (const std::optional<Selection> s = select_signs(m, wide)) return m.finish(*s);

  const std::optional<Rounding> rounding = m.take_rounding();
  const std::string_view op = m.opcode();
  // add, sub and mul round to nearest by default; fma and division must name a mode.
  if (op == "add" || op == "sub" || op == "mul" || rounding) {
    const Rounding mode = rounding.value_or(Rounding::nearest_even);
    if (const std::optional<Selection> s = select_arithmetic(m, wide, mode)) return m.finish(*s);
    if (const std::optional<Selection> s = select_division(m, wide, mode)) return m.finish(*s);
  }
  return std::nullopt;
}

}  // namespace assay::sim
