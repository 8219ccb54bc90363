// Conversions between floating-point values and integers (PTX ISA, "cvt").
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sim/math/formats.h"

namespace assay::sim {

// To an integral value of the same type: .rni .rzi .rmi .rpi. The sign of zero is kept.
template <Rounding R, class Real>
[[gnu::always_inline]] inline Real round_integral(Real x) {
  static_assert(R != Rounding::nearest_away);
  if constexpr (R == Rounding::nearest_even) return std::nearbyint(x);
  if constexpr (R == Rounding::toward_zero) return std::trunc(x);
  if constexpr (R == Rounding::down) return std::floor(x);
  return std::ceil(x);
}

// What NaN converts to: zero, except from f64 or to 64 bits, where only the top bit is set.
template <class To, class Real>
inline constexpr To kIntegerOfNan = sizeof(Real) < 8 && sizeof(To) < 8
                                        ? To{0}
                                        : static_cast<To>(std::uint64_t{1} << (sizeof(To) * 8 - 1));

// Rounds to an integer, then clamps to the range of To. Real is float or double; values of f16 and
// bf16 are widened first.
template <class To, Rounding R, class Real>
[[gnu::always_inline]] inline To to_integer(Real x) {
  constexpr Real kLow = static_cast<Real>(std::numeric_limits<To>::min());
  // 2 to the number of value bits: the first value that is too large.
  constexpr Real kHigh = static_cast<Real>(To{1} << (std::numeric_limits<To>::digits - 1)) * 2;
  using Wide = std::conditional_t<(sizeof(To) < 4), std::int32_t, To>;
  const Real r = round_integral<R>(x);
  const bool low = r < kLow, high = r >= kHigh, nan = r != r;
  // Only in-range values reach the conversion: others would be undefined behaviour.
  To out = static_cast<To>(static_cast<Wide>(select(low || high || nan, Real{0}, r)));
  out = select<To>(low, std::numeric_limits<To>::min(), out);
  out = select<To>(high, std::numeric_limits<To>::max(), out);
  return select<To>(nan, kIntegerOfNan<To, Real>, out);
}

// Clamps an integer of any type to the range of To: .sat of integer conversions.
template <class To, class From>
[[gnu::always_inline]] inline To clamp_integer(From x) {
  using Limits = std::numeric_limits<To>;
  using Source = std::numeric_limits<From>;
  From out = x;
  if constexpr (Source::is_signed && (!Limits::is_signed || Limits::digits < Source::digits)) {
    out = out < static_cast<From>(Limits::min()) ? static_cast<From>(Limits::min()) : out;
  }
  if constexpr (Limits::digits < Source::digits) {
    out = out > static_cast<From>(Limits::max()) ? static_cast<From>(Limits::max()) : out;
  }
  return static_cast<To>(out);
}

}  // namespace assay::sim
