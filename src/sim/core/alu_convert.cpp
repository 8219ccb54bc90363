// cvt between floating-point types, and the choice among all conversions (PTX ISA, "cvt").
#include "sim/core/alu_convert.h"

namespace assay::sim {
namespace {

using std::uint32_t, std::uint64_t;

// The operand after .ftz, .sat and .relu. The bounds are values of every type: clamping before or
// after rounding is the same.
template <class From>
[[gnu::always_inline]] inline auto prepare(From value, ConvertFlags flags) {
  auto x = real_of(value);
  if constexpr (std::is_same_v<From, float>) x = flags.ftz ? flush(x) : x;
  x = flags.sat ? saturate(x) : x;
  return flags.relu ? relu(x) : x;
}

// Exact. A NaN stays one: sign and payload are kept, and it becomes quiet.
[[gnu::always_inline]] inline double to_double(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint64_t nan = uint64_t{bits & F32::sign} << 32 | F64::infinity | uint64_t{1} << 51 |
                       uint64_t{bits & (F32::min_normal - 1)} << 29;
  return x != x ? std::bit_cast<double>(nan) : static_cast<double>(x);
}

template <Rounding R>
[[gnu::always_inline]] inline float to_float(double x) {
  if constexpr (R == Rounding::nearest_even) return canonical(static_cast<float>(x));
  return std::bit_cast<float>(
      static_cast<uint32_t>(narrow<F64, F32, R>(std::bit_cast<uint64_t>(x))));
}

// To a type with fewer bits of precision or of range, in rounding mode R.
template <class From, class To, Rounding R>
struct Narrow {
  [[gnu::always_inline]] static To apply(From value, Fixed fixed) {
    const ConvertFlags flags(fixed);
    const auto x = prepare(value, flags);
    if constexpr (is_half<To>) {
      return to_half<To, R>(x);
    } else {
      const float out = to_float<R>(x);
      return flags.ftz ? flush(out) : out;
    }
  }
};

// To a type that holds every value.
template <class From, class To>
struct Widen {
  [[gnu::always_inline]] static To apply(From value, Fixed fixed) {
    const ConvertFlags flags(fixed);
    const auto x = prepare(value, flags);
    if constexpr (std::is_same_v<To, double>) {
      return to_double(x);
    } else {
      return flags.ftz ? flush(x) : x;
    }
  }
};

// Back to a type from a value of it, NaN canonical.
template <class T, class Real>
[[gnu::always_inline]] inline T same_type(Real x) {
  if constexpr (is_half<T>) {
    return to_half<T>(x);
  } else {
    return canonical(x);
  }
}
template <class T>
struct Same {
  [[gnu::always_inline]] static T apply(T value, Fixed fixed) {
    return same_type<T>(prepare(value, fixed));
  }
};
template <class T, Rounding R>
struct Integral {
  [[gnu::always_inline]] static T apply(T value, Fixed fixed) {
    const ConvertFlags flags(fixed);
    auto x = real_of(value);
    if constexpr (std::is_same_v<T, float>) x = flags.ftz ? flush(x) : x;
    x = round_integral<R>(x);
    return same_type<T>(flags.sat ? saturate(x) : x);
  }
};

template <Rounding R>
struct ToTf32 {
  [[gnu::always_inline]] static uint32_t apply(float value, Fixed fixed) {
    return to_tf32<R>(prepare(value, fixed));
  }
};
// The first operand goes to the upper half.
template <class T, Rounding R>
struct PackHalves {
  [[gnu::always_inline]] static Pair<T> apply(float a, float b, Fixed fixed) {
    return pair_of(to_half<T, R>(prepare(b, fixed)), to_half<T, R>(prepare(a, fixed)));
  }
};

constexpr InstrClass kClass = InstrClass::conversion;

bool is_real(AluType type) {
  return type == AluType::f16 || type == AluType::bf16 || type == AluType::f32 ||
         type == AluType::f64;
}

bool is_exact(AluType to, AluType from) {
  return bits_of(to) > bits_of(from) && from != AluType::none;
}

Selection convert_reals(Modifiers& m, AluType to, AluType from, uint64_t flags) {
  if (to == from) {
    if (const std::optional<Rounding> rounding = m.take_integer_rounding()) {
      return with_real(to, [&]<class T>(T) {
        return with_rounding(*rounding, [&](auto r) {
          return lanewise<Integral<T, decltype(r)::value>>(kClass, 0, flags);
        });
      });
    }
    return with_real(to, [&]<class T>(T) { return lanewise<Same<T>>(kClass, 0, flags); });
  }
  if (is_exact(to, from)) {
    return with_real(to, [&]<class To>(To) {
      return with_real(from, [&]<class From>(From) {
        if constexpr (sizeof(LaneWord<To>) > sizeof(LaneWord<From>) ||
                      (is_half<From> && std::is_same_v<To, float>)) {
          return lanewise<Widen<From, To>>(kClass, 0, flags);
        } else {
          return Selection{};
        }
      });
    });
  }
  const std::optional<Rounding> rounding = m.take_rounding();
  if (!rounding) return {};
  return with_real(to, [&]<class To>(To) {
    return with_real(from, [&]<class From>(From) {
      // f16 and bf16 to each other too: neither holds the other's values.
      constexpr bool kNarrow = std::is_same_v<From, double>
                                   ? !std::is_same_v<To, double>
                                   : is_half<To> && !std::is_same_v<To, From>;
      if constexpr (kNarrow) {
        return with_rounding(*rounding, [&](auto r) {
          return lanewise<Narrow<From, To, decltype(r)::value>>(kClass, 0, flags);
        });
      } else {
        return Selection{};
      }
    });
  });
}

Selection convert_to_tf32(Modifiers& m, uint64_t flags) {
  if (m.take("rna")) return lanewise<ToTf32<Rounding::nearest_away>>(kClass, 0, flags);
  if (m.take("rn")) return lanewise<ToTf32<Rounding::nearest_even>>(kClass, 0, flags);
  if (m.take("rz")) return lanewise<ToTf32<Rounding::toward_zero>>(kClass, 0, flags);
  return {};
}

template <class T>
Selection convert_packed(Modifiers& m, uint64_t flags) {
  if (m.take("rn")) return lanewise<PackHalves<T, Rounding::nearest_even>>(kClass, 0, flags);
  if (m.take("rz")) return lanewise<PackHalves<T, Rounding::toward_zero>>(kClass, 0, flags);
  return {};
}

}  // namespace

std::optional<Selection> select_convert(Modifiers& m) {
  if (m.opcode() != "cvt") return std::nullopt;
  if (m.take("pack")) return select_convert_pack(m);
  const AluType to = m.type(0), from = m.type(1);
  const bool ftz = m.take("ftz"), sat = m.take("sat"), relu = m.take("relu");
  const uint64_t flags = (ftz ? ConvertFlags::kFtz : 0) | (sat ? ConvertFlags::kSat : 0) |
                         (relu ? ConvertFlags::kRelu : 0);
  // .ftz is about f32 alone; .relu is of conversions to the narrow formats.
  if (ftz && to != AluType::f32 && from != AluType::f32) m.unsupported();
  const bool narrow = to == AluType::f16 || to == AluType::bf16 || to == AluType::f16x2 ||
                      to == AluType::bf16x2 || to == AluType::tf32;
  if (relu && (!narrow || sat || !(is_real(from)))) m.unsupported();

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
