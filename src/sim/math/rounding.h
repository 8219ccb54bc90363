// Arithmetic in a given rounding mode, correctly rounded, without changing the host's mode where
// lanes are many (f32), and inside one fenced function where they are few (f64).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "sim/math/formats.h"

namespace assay::sim {

// Of single precision.
//
// Method: the operation is done in double and rounded to nearest float, f; then f is compared with
// the exact result, and moved by one unit if it lies on the wrong side. The exact result is known
// as an unevaluated sum (Knuth, TAOCP 2, 4.2.2, theorem B) or, of quotients and roots, by
// multiplying back, which is exact in double. f is at most one unit off, since both roundings are
// to nearest.

// Moves `f`, which is above (below) the exact result where the flags say so.
template <Rounding R>
[[gnu::always_inline]] inline float step(float f, bool above, bool below) {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const bool negative = bits >> 31 != 0;
  // A larger pattern is a larger magnitude; overflow and underflow need no care.
  const std::uint32_t toward_zero = bits - 1, away = bits + 1;
  std::uint32_t out = bits;
  if constexpr (R == Rounding::toward_zero) {
    out = (negative ? below : above) ? toward_zero : bits;
  } else if constexpr (R == Rounding::down) {
    out = above ? (negative ? away : toward_zero) : bits;
  } else if constexpr (R == Rounding::up) {
    out = below ? (negative ? toward_zero : away) : bits;
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

template <Rounding R>
[[gnu::always_inline]] inline float round_sum(ExactSum x) {
  const float f = static_cast<float>(x.value);
  const double wide = f;
  const bool equal = wide == x.value;
  return step<R>(f, wide > x.value || (equal && x.error < 0),
                 wide < x.value || (equal && x.error > 0));
}

// a * b + c, rounded to odd: the exact result if a float is, else of the two floats around it the
// one whose pattern is odd. Rounding that to nearest in a format of at most 22 bits rounds but
// once.
[[gnu::always_inline]] inline float fma_to_odd(float a, float b, float c) {
  const ExactSum x = two_sum(static_cast<double>(a) * b, c);
  const float f = static_cast<float>(x.value);
  const double wide = f;
  const bool equal = wide == x.value;
  const bool above = wide > x.value || (equal && x.error < 0);
  const bool below = wide < x.value || (equal && x.error > 0);
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const bool negative = bits >> 31 != 0;
  const std::uint32_t moved = above != negative ? bits - 1 : bits + 1;
  const bool move = (above || below) && (bits & 1) == 0;
  return std::bit_cast<float>(move ? moved : bits);
}

// The sign that an exactly zero sum has when rounding down: negative unless both are positive.
[[gnu::always_inline]] inline float zero_sum_down(double a, double b) {
  const auto signs = std::bit_cast<std::uint64_t>(a) | std::bit_cast<std::uint64_t>(b);
  return signs >> 63 != 0 ? -0.0f : 0.0f;
}

template <Rounding R>
[[gnu::always_inline]] inline float add(float a, float b) {
  if constexpr (R == Rounding::nearest_even) {
    return a + b;
  } else {
    const ExactSum x = two_sum(a, b);
    const float f = round_sum<R>(x);
    if constexpr (R == Rounding::down) return x.value == 0 ? zero_sum_down(a, b) : f;
    return f;
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
    const double product = static_cast<double>(a) * b;
    const ExactSum x = two_sum(product, c);
    const float f = round_sum<R>(x);
    if constexpr (R == Rounding::down) return x.value == 0 ? zero_sum_down(product, c) : f;
    return f;
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
    return step<R>(f, b < 0 ? less : more, b < 0 ? more : less);
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

// Of double precision: elementwise on n values, in the mode given (not nearest_away). `out` may be
// an input. The host's rounding mode is as before on return.
void add_f64(Rounding, const double* a, const double* b, double* out, int n);
void mul_f64(Rounding, const double* a, const double* b, double* out, int n);
void fma_f64(Rounding, const double* a, const double* b, const double* c, double* out, int n);
void div_f64(Rounding, const double* a, const double* b, double* out, int n);
void sqrt_f64(Rounding, const double* a, double* out, int n);

}  // namespace assay::sim
