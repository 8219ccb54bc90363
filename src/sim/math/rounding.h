// Arithmetic in a given rounding mode, correctly rounded. For many lanes (f32) it does not change
// the host's mode; for few (f64) it does so inside one fenced function.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "sim/math/formats.h"

namespace assay::sim {

// Single precision.
//
// Method: compute in double and round to the nearest float, f; then compare f with the exact
// result, and move it by one unit if it is on the wrong side. The exact result is known as an
// unevaluated sum (Knuth, TAOCP 2, 4.2.2, theorem B) or, for quotients and roots, by multiplying
// back, which is exact in double. f is at most one unit off, since both roundings are to nearest.

// Moves `f` if the flags say that it is above (below) the exact result.
template <Rounding R>
[[gnu::always_inline]] inline float step(float f, bool above, bool below) {
  // A larger pattern is a larger magnitude; overflow and underflow need no special treatment.
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t negative = 0 - (bits >> 31);
  const std::uint32_t up = negative | 1;  // the next larger float's pattern, less this one's
  std::uint32_t out = bits;
  if constexpr (R == Rounding::toward_zero) {
    out = bits - (select<std::uint32_t>(above, 1, 0) & ~negative) -
          (select<std::uint32_t>(below, 1, 0) & negative);
  } else if constexpr (R == Rounding::down) {
    out = bits - select<std::uint32_t>(above, up, 0);
  } else if constexpr (R == Rounding::up) {
    out = bits + select<std::uint32_t>(below, up, 0);
  }
  return std::bit_cast<float>(out);
}

struct ExactSum {
  double value, error;  // value is the rounded sum; their unevaluated sum is exact
};

[[gnu::always_inline]] inline ExactSum two_sum(double a, double b) {
  const double s = a + b;
  const double bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

// How far f, the float nearest to x.value, is above x: has the right sign, or is zero. NaN if x is.
[[gnu::always_inline]] inline double excess(float f, ExactSum x) {
  return (static_cast<double>(f) - x.value) - x.error;
}

template <Rounding R>
[[gnu::always_inline]] inline float round_sum(ExactSum x) {
  const float f = static_cast<float>(x.value);
  const double e = excess(f, x);
  return step<R>(f, e > 0, e < 0);
}

// a * b + c, rounded to odd: the exact result if it is a float, else whichever of the two
// neighbouring floats has an odd pattern. Rounding that to nearest in a format of at most 22 bits
// rounds only once.
[[gnu::always_inline]] inline float fma_to_odd(float a, float b, float c) {
  const ExactSum x = two_sum(static_cast<double>(a) * b, c);
  const float f = static_cast<float>(x.value);
  const double e = excess(f, x);
  const auto bits = std::bit_cast<std::uint32_t>(f);
  // One pattern up or down if f is even; unchanged if it is odd.
  const std::uint32_t up = ((0 - (bits >> 31)) | 1) & ((bits & 1) - 1);
  return std::bit_cast<float>(bits - select<std::uint32_t>(e > 0, up, 0) +
                              select<std::uint32_t>(e < 0, up, 0));
}

// The sign of an exactly zero sum when rounding down: negative unless both terms, given by patterns
// with their sign, are positive.
[[gnu::always_inline]] inline float zero_sum_down(std::uint32_t term, std::uint32_t other) {
  return std::bit_cast<float>((term | other) & F32::sign);
}

template <Rounding R>
[[gnu::always_inline]] inline float add(float a, float b) {
  if constexpr (R == Rounding::nearest_even) {
    return a + b;
  } else {
    const ExactSum x = two_sum(a, b);
    const float f = round_sum<R>(x);
    if constexpr (R != Rounding::down) return f;
    const auto zero =
        zero_sum_down(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b));
    return select(x.value == 0, zero, f);
  }
}

template <Rounding R>
[[gnu::always_inline]] inline float mul(float a, float b) {
  if constexpr (R == Rounding::nearest_even) {
    return a * b;
  } else {
    return round_sum<R>({static_cast<double>(a) * b, 0.0});
  }
}

template <Rounding R>
[[gnu::always_inline]] inline float fma(float a, float b, float c) {
  if constexpr (R == Rounding::nearest_even) {
    return std::fma(a, b, c);
  } else {
    const ExactSum x = two_sum(static_cast<double>(a) * b, c);
    const float f = round_sum<R>(x);
    if constexpr (R != Rounding::down) return f;
    const auto zero =
        zero_sum_down(std::bit_cast<std::uint32_t>(a) ^ std::bit_cast<std::uint32_t>(b),
                      std::bit_cast<std::uint32_t>(c));
    return select(x.value == 0, zero, f);
  }
}

template <Rounding R>
[[gnu::always_inline]] inline float div(float a, float b) {
  const float f = a / b;
  if constexpr (R == Rounding::nearest_even) {
    return f;
  } else {
    const double back = static_cast<double>(f) * b, exact = a;
    const bool more = back > exact, less = back < exact;
    const bool negative = b < 0;
    return step<R>(f, (more & !negative) | (less & negative),
                   (less & !negative) | (more & negative));
  }
}

template <Rounding R>
[[gnu::always_inline]] inline float sqrt(float a) {
  const float f = std::sqrt(a);
  if constexpr (R == Rounding::nearest_even) {
    return f;
  } else {
    const double back = static_cast<double>(f) * f;
    return step<R>(f, back > a, back < a);
  }
}

// Double precision: elementwise on n values, in the given mode (not nearest_away). `out` may be an
// input. The host's rounding mode is restored on return.
void add_f64(Rounding, const double* a, const double* b, double* out, int n);
void mul_f64(Rounding, const double* a, const double* b, double* out, int n);
void fma_f64(Rounding, const double* a, const double* b, const double* c, double* out, int n);
void div_f64(Rounding, const double* a, const double* b, double* out, int n);
void sqrt_f64(Rounding, const double* a, double* out, int n);

}  // namespace assay::sim
