// min and max (PTX ISA, "Floating Point Instructions").
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sim/math/formats.h"

namespace assay::sim {

// A NaN loses to a number unless kNan (.NaN) is set; -0 is less than +0. A NaN result is canonical.
template <class Real, bool kMax, bool kNan>
[[gnu::always_inline]] inline Real extreme(Real a, Real b) {
  using Signed = std::conditional_t<sizeof(Real) == 8, std::int64_t, std::int32_t>;
  constexpr Signed kMagnitude = std::numeric_limits<Signed>::max();
  // Integers in the order of the values, with -0 below +0.
  const auto key = [](Real x) {
    const auto bits = std::bit_cast<Signed>(x);
    return bits ^ (bits >> (sizeof(Signed) * 8 - 1) & kMagnitude);
  };
  const bool first = kMax ? key(a) > key(b) : key(a) < key(b);
  Real out = select(first, a, b);
  out = select(b != b, a, out);
  out = select(a != a, b, out);
  if constexpr (kNan) out = select(a != a, a, select(b != b, b, out));
  return canonical(out);
}

// .xorsign.abs: applied to the magnitudes, with the product of the signs unless it is NaN.
template <bool kMax, bool kNan>
[[gnu::always_inline]] inline float extreme_xorsign(float a, float b) {
  const auto signs = std::bit_cast<std::uint32_t>(a) ^ std::bit_cast<std::uint32_t>(b);
  const float magnitude = extreme<float, kMax, kNan>(std::fabs(a), std::fabs(b));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  return std::bit_cast<float>(select(magnitude != magnitude, bits, bits | (signs & F32::sign)));
}

}  // namespace assay::sim
