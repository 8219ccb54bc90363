// cvt between floating-point types, and the selection among all conversions (PTX ISA, "cvt").
#include "sim/operations/alu_convert.h"

namespace assay::sim {
namespace {

using std::uint32_t, std::uint64_t;

// The operand after .ftz, .sat and .relu. The bounds are exact in every type, so clamping before
// rounding equals clamping after.
template <class From, class Flags>
[[gnu::always_inline]] inline auto prepare(From value, Flags flags) {
  auto x = real_of(value);
  if constexpr (std::is_same_v<From, float>) x = select(flags.ftz, flush(x), x);
  x = select(flags.sat, saturate(x), x);
  return select(flags.relu, relu(x), x);
}

// Exact. A NaN stays NaN: it keeps sign and payload and becomes quiet.
[[gnu::always_inline]] inline double to_double(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint64_t nan = uint64_t{bits & F32::sign} << 32 | F64::infinity | uint64_t{1} << 51 |
                       uint64_t{bits & (F32::min_normal - 1)} << 29;
  return select(x != x, std::bit_cast<double>(nan), static_cast<double>(x));
}

template <Rounding R>
[[gnu::always_inline]] inline float to_float(double x) {
  if constexpr (R == Rounding::nearest_even) return canonical(static_cast<float>(x));
  return std::bit_cast<float>(
      static_cast<uint32_t>(narrow<F64, F32, R>(std::bit_cast<uint64_t>(x))));
}

// .satfinite
template <class To, class Flags>
[[gnu::always_inline]] inline To finite(To value, Flags flags) {
  return {select(flags.finite, saturate_finite<typename To::Bits>(value.bits), value.bits)};
}

// To a type with less precision or range, in rounding mode R.
template <class From, class To, Rounding R, class Flags>
struct Narrow {
  [[gnu::always_inline]] static To apply(From value, Fixed fixed) {
    const Flags flags(fixed);
    const auto x = prepare(value, flags);
    if constexpr (is_half<To>) {
      return finite<To>(to_half<To, R>(x), flags);
    } else {
      const float out = to_float<R>(x);
      return select(flags.ftz, flush(out), out);
    }
  }
};

// To a type that can represent every value.
template <class From, class To, class Flags>
struct Widen {
  [[gnu::always_inline]] static To apply(From value, Fixed fixed) {
    const Flags flags(fixed);
    const auto x = prepare(value, flags);
    if constexpr (std::is_same_v<To, double>) {
      return to_double(x);
    } else {
      return select(flags.ftz, flush(x), x);
    }
  }
};

// Converts a value representable in T back to T, with NaN canonical.
template <class T, class Real>
[[gnu::always_inline]] inline T same_type(Real x) {
  if constexpr (is_half<T>) {
    return to_half<T>(x);
  } else {
    return canonical(x);
  }
}
template <class T, class Flags>
struct Same {
  [[gnu::always_inline]] static T apply(T value, Fixed fixed) {
    return same_type<T>(prepare(value, Flags(fixed)));
  }
};
template <class T, Rounding R, class Flags>
struct Integral {
  [[gnu::always_inline]] static T apply(T value, Fixed fixed) {
    const Flags flags(fixed);
    auto x = real_of(value);
    if constexpr (std::is_same_v<T, float>) x = select(flags.ftz, flush(x), x);
    x = round_integral<R>(x);
    return same_type<T>(select(flags.sat, saturate(x), x));
  }
};

template <Rounding R, class Flags>
struct ToTf32 {
  [[gnu::always_inline]] static uint32_t apply(float value, Fixed fixed) {
    const Flags flags(fixed);
    const uint32_t bits = to_tf32<R>(prepare(value, flags));
    const bool infinite = (bits & (F32::sign - 1)) == F32::infinity;
    return select(flags.finite && infinite, (bits & F32::sign) | Tf32::max_finite << 13, bits);
  }
};
// The first operand goes to the upper half.
template <class T, Rounding R, class Flags>
struct PackHalves {
  [[gnu::always_inline]] static Pair<T> apply(float a, float b, Fixed fixed) {
    const Flags flags(fixed);
    return pair_of(finite<T>(to_half<T, R>(prepare(b, flags)), flags),
                   finite<T>(to_half<T, R>(prepare(a, flags)), flags));
  }
};

constexpr InstrClass kClass = InstrClass::conversion;

bool is_real(AluType type) {
  return type == AluType::f16 || type == AluType::bf16 || type == AluType::f32 ||
         type == AluType::f64;
}

// A handler for an operation whose last parameter is Flags.
template <template <class...> class Op, class... T>
Selection flagged(uint64_t flags) {
  return with_flags(
      flags, [&]<class Flags>(Flags*) { return lanewise<Op<T..., Flags>>(kClass, 0, flags); });
}
template <class From, class To, class R, class Flags>
using NarrowOp = Narrow<From, To, R::value, Flags>;
template <class T, class R, class Flags>
using IntegralOp = Integral<T, R::value, Flags>;
template <class R, class Flags>
using ToTf32Op = ToTf32<R::value, Flags>;
template <class T, class R, class Flags>
using PackHalvesOp = PackHalves<T, R::value, Flags>;

Selection convert_same(Modifiers& m, AluType type, uint64_t flags) {
  const std::optional<Rounding> rounding = m.take_integer_rounding();
  return with_real(type, [&]<class T>(T) {
    if (!rounding) return flagged<Same, T>(flags);
    return with_rounding(*rounding, [&]<class R>(R) { return flagged<IntegralOp, T, R>(flags); });
  });
}

Selection convert_exactly(AluType to, AluType from, uint64_t flags) {
  return with_real(to, [&]<class To>(To) {
    return with_real(from, [&]<class From>(From) {
      constexpr bool kWider = std::is_same_v<To, double>
                                  ? !std::is_same_v<From, double>
                                  : std::is_same_v<To, float> && is_half<From>;
      if constexpr (kWider) {
        return flagged<Widen, From, To>(flags);
      } else {
        return Selection{};
      }
    });
  });
}

Selection convert_rounding(Modifiers& m, AluType to, AluType from, uint64_t flags) {
  const std::optional<Rounding> rounding = m.take_rounding();
  if (!rounding) return {};
  return with_real(to, [&]<class To>(To) {
    return with_real(from, [&]<class From>(From) {
      // f16 and bf16 also narrow to each other: neither can represent all values of the other.
      constexpr bool kNarrow = std::is_same_v<To, float> ? std::is_same_v<From, double>
                                                         : is_half<To> && !std::is_same_v<To, From>;
      if constexpr (kNarrow) {
        return with_rounding(*rounding,
                             [&]<class R>(R) { return flagged<NarrowOp, From, To, R>(flags); });
      } else {
        return Selection{};
      }
    });
  });
}

Selection convert_reals(Modifiers& m, AluType to, AluType from, uint64_t flags) {
  if (to == from) return convert_same(m, to, flags);
  if (bits_of(to) > bits_of(from)) return convert_exactly(to, from, flags);
  return convert_rounding(m, to, from, flags);
}

using Nearest = RoundingConstant<Rounding::nearest_even>;
using TowardZero = RoundingConstant<Rounding::toward_zero>;

Selection convert_to_tf32(Modifiers& m, uint64_t flags) {
  if (m.take("rna")) return flagged<ToTf32Op, RoundingConstant<Rounding::nearest_away>>(flags);
  if (m.take("rn")) return flagged<ToTf32Op, Nearest>(flags);
  if (m.take("rz")) return flagged<ToTf32Op, TowardZero>(flags);
  return {};
}

template <class T>
Selection convert_packed(Modifiers& m, uint64_t flags) {
  if (m.take("rn")) return flagged<PackHalvesOp, T, Nearest>(flags);
  if (m.take("rz")) return flagged<PackHalvesOp, T, TowardZero>(flags);
  return {};
}

}  // namespace

std::optional<Selection> select_convert(Modifiers& m) {
  if (m.opcode() != "cvt") return std::nullopt;
  if (m.take("pack")) return select_convert_pack(m);
  if (auto fp8 = select_convert_fp8(m)) return fp8;
  const AluType to = m.type(0), from = m.type(1);
  const bool ftz = m.take("ftz"), sat = m.take("sat"), relu = m.take("relu");
  const bool finite = m.take("satfinite");
  const uint64_t flags = (ftz ? ConvertFlags::kFtz : 0) | (sat ? ConvertFlags::kSat : 0) |
                         (relu ? ConvertFlags::kRelu : 0) | (finite ? ConvertFlags::kSatFinite : 0);
  // .ftz only concerns f32; .relu is for conversions to the narrow formats.
  if (ftz && to != AluType::f32 && from != AluType::f32) m.unsupported();
  const bool narrow = to == AluType::f16 || to == AluType::bf16 || to == AluType::f16x2 ||
                      to == AluType::bf16x2 || to == AluType::tf32;
  if (relu && (!narrow || sat || !(is_real(from)))) m.unsupported();
  if (finite && (!narrow || sat || from != AluType::f32)) m.unsupported();

  Selection s;
  if (is_integer(to) && is_integer(from)) {
    s = convert_integers(to, from, sat);
  } else if (is_integer(to) && is_real(from)) {
    if (const auto rounding = m.take_integer_rounding()) {
      s = convert_to_integer(to, from, *rounding, flags);
    }
  } else if (is_real(to) && is_integer(from)) {
    if (const auto rounding = m.take_rounding()) {
      s = convert_from_integer(to, from, *rounding, flags);
    }
  } else if (is_real(to) && is_real(from)) {
    s = convert_reals(m, to, from, flags);
  } else if (from == AluType::f32 && !sat) {
    if (to == AluType::tf32) s = convert_to_tf32(m, flags);
    if (to == AluType::f16x2) s = convert_packed<Half>(m, flags);
    if (to == AluType::bf16x2) s = convert_packed<Bfloat>(m, flags);
  }
  return m.finish(s, 2);
}

}  // namespace assay::sim
