// PTX's approximate functions (ex2.approx and similar), within the errors that the PTX ISA
// documents and with its special cases, but not bit for bit what any GPU returns.
//
// Uses no C library function whose last bit varies, no table and no fused operation, so that every
// host gives the same bits; and no branch, so that loops over lanes vectorise. The coefficients are
// those of Taylor series, one term longer than minimax polynomials would be.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/math/formats.h"

namespace assay::sim::approx {

// 2^x. Relative error at most 2^-23 (documented: 2^-22.5); subnormal results are rounded once.
[[gnu::always_inline]] inline float ex2(float x) {
  // Beyond these bounds the result is 0 or infinity anyway. NaN is clamped to the lower one.
  const float low = select(x > -160.0f, x, -160.0f);
  const float clamped = select(low < 130.0f, low, 130.0f);
  const float n = std::nearbyint(clamped);
  const float r = clamped - n;  // exact, in [-1/2, 1/2]
  // Powers of ln 2 over factorials.
  float p = 1.5252734e-5f;
  p = p * r + 1.5403530e-4f;
  p = p * r + 1.3333558e-3f;
  p = p * r + 9.6181291e-3f;
  p = p * r + 5.5504109e-2f;
  p = p * r + 2.4022651e-1f;
  p = p * r + 6.9314718e-1f;
  p = p * r + 1.0f;
  // 2^n in two factors: each is a normal number, and only the second product can round.
  const auto exponent = static_cast<std::int32_t>(n);
  const std::int32_t half = exponent >> 1;
  const auto power = [](std::int32_t e) { return std::bit_cast<float>((e + 127) << 23); };
  const float y = p * power(half) * power(exponent - half);
  return select(x != x, std::bit_cast<float>(kNan32), y);
}

// log2(x). Absolute error at most 2^-22.5 in (1/2, 2), relative error at most 2^-22.5 elsewhere
// (documented: 2^-22).
[[gnu::always_inline]] inline float lg2(float x) {
  const bool subnormal = x < 0x1p-126f;
  const auto bits = std::bit_cast<std::uint32_t>(select(subnormal, x * 0x1p24f, x));
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 artanh(s).
  constexpr std::uint32_t kRootHalf = 0x3f3504f3;
  const std::int32_t e = static_cast<std::int32_t>(bits - kRootHalf) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(e) << 23)) - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  // 2 / (k ln 2) for odd k.
  float p = 0.32059892f;
  p = p * z + 0.41219861f;
  p = p * z + 0.57707802f;
  p = p * z + 0.96179669f;
  const float fraction = s * 2.8853901f + s * (z * p);
  float y = (static_cast<float>(e) - select(subnormal, 24.0f, 0.0f)) + fraction;
  y = select(x == 0, -std::numeric_limits<float>::infinity(), y);
  y = select(x == std::numeric_limits<float>::infinity(), x, y);
  return select(!(x >= 0), std::bit_cast<float>(kNan32), y);
}

// sin(x), or cos(x). Absolute error at most 2^-23 for |x| <= 2^20 (documented: 2^-20.5 in [-2 pi, 2
// pi], growing beyond). Above that the reduction loses digits, as on hardware; the result stays in
// [-1, 1].
template <bool kCosine>
[[gnu::always_inline]] inline float sine(float x) {
  const double turns = static_cast<double>(std::fabs(x)) * 0.63661977236758134;  // times 2 / pi
  const double nearest = std::nearbyint(turns);
  const double quadrant = nearest - 4.0 * std::floor(nearest * 0.25) + (kCosine ? 1 : 0);
  const float y = static_cast<float>((turns - nearest) * 1.5707963267948966);  // |y| <= pi / 4
  const float z = y * y;
  float s = 2.7557319e-6f;
  s = s * z - 1.9841270e-4f;
  s = s * z + 8.3333333e-3f;
  s = s * z - 1.6666667e-1f;
  s = y + y * (z * s);
  float c = 2.4801587e-5f;
  c = c * z - 1.3888889e-3f;
  c = c * z + 4.1666667e-2f;
  c = c * z - 0.5f;
  c = 1.0f + z * c;
  // Quadrants as bits: the lower one exchanges sine and cosine, the upper one the sign. The sum
  // leaves them lowest in the fraction.
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(quadrant) + 0x1p23f);
  const float magnitude = select((bits & 1) != 0, c, s);
  const std::uint32_t own = kCosine ? 0 : std::bit_cast<std::uint32_t>(x) & F32::sign;
  const std::uint32_t sign = (bits & 2) << 30 ^ own;
  return canonical(std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) ^ sign));
}
[[gnu::always_inline]] inline float sin(float x) { return sine<false>(x); }
[[gnu::always_inline]] inline float cos(float x) { return sine<true>(x); }

// Relative error at most 2^-22 (documented: 2^-11).
[[gnu::always_inline]] inline float tanh(float x) {
  const float a = std::fabs(x);
  // Small arguments: three levels of Lambert's continued fraction.
  const float z = a * a;
  const float small_over = a * (945.0f + z * (105.0f + z));
  const float small_under = 945.0f + z * (420.0f + z * 15.0f);
  // Larger arguments: by e^2a; beyond 10 the result rounds to 1.
  const float e = ex2(select(a < 10.0f, a, 10.0f) * 2.8853901f);
  const bool small = a < 0.625f;
  const float y = select(small, small_over, e - 1.0f) / select(small, small_under, e + 1.0f);
  return select(x != x, std::bit_cast<float>(kNan32), std::copysign(y, x));
}

// Correctly rounded (documented: 1 ulp).
[[gnu::always_inline]] inline float rcp(float x) { return canonical(1.0f / x); }
// Correctly rounded (documented: relative error 2^-23).
[[gnu::always_inline]] inline float sqrt(float x) { return canonical(std::sqrt(x)); }
// Relative error at most 2^-23 (documented: 2^-22.9).
[[gnu::always_inline]] inline float rsqrt(float x) { return canonical(1.0f / std::sqrt(x)); }

// div.full: correctly rounded (documented: 2 ulp).
[[gnu::always_inline]] inline float div_full(float a, float b) { return canonical(a / b); }
// div.approx: the same except for |b| above 2^126, where the reciprocal underflows: 0, or NaN if a
// is infinite.
[[gnu::always_inline]] inline float div(float a, float b) {
  return canonical(select(std::fabs(b) > 0x1p126f, a * std::copysign(0.0f, b), a / b));
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and return only the upper 32 bits of a double.
[[gnu::always_inline]] inline double upper_half(double x) {
  constexpr std::uint64_t kUpper = 0xffffffff00000000;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) & kUpper;
  const std::uint64_t sign = bits & F64::sign;
  return std::bit_cast<double>(select((bits ^ sign) < F64::min_normal, sign, bits));
}
[[gnu::always_inline]] inline double rcp_upper(double x) {
  return canonical(upper_half(1.0 / upper_half(x)));
}
[[gnu::always_inline]] inline double rsqrt_upper(double x) {
  return canonical(upper_half(1.0 / std::sqrt(upper_half(x))));
}

}  // namespace assay::sim::approx
