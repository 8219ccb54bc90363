// Sums as tensor cores compute them; tensor.h says what is known about that and how.
#pragma once

#include <cmath>

#include "sim/math/tensor_tiles.h"

namespace assay::sim {

// This many bits after the leading one of a sum's largest term are kept, and of all other terms the
// bits in the same places.
inline constexpr int kKeptBits = 25;

template <class T>
[[gnu::always_inline]] inline Eight<T> larger(Eight<T> a, Eight<T> b) {
  return a > b ? a : b;
}

// The powers of two for the exponents in an encoding: for a subnormal number that of the smallest
// normal one, `least`; for 0 none.
template <int count>
[[gnu::always_inline]] inline void powers_of_two(const double (&x)[count], double least,
                                                 double (&powers)[count]) {
  static_assert(count % 8 == 0);
  constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;
  for (int i = 0; i < count; i += 8) {
    const auto v = load<Eight<double>>(x + i);
    const auto power = as_bits<Eight<double>>(as_bits<Eight<std::uint64_t>>(v) & kExponent);
    const Eight<double> zero{};
    store(powers + i, v == zero ? zero : larger<double>(power, zero + least));
  }
}

// Rounds towards zero. REQUIRES: |x| < 2^31.
[[gnu::always_inline]] inline Eight<std::int32_t> truncated(Eight<double> x) {
  return __builtin_convertvector(x, Eight<std::int32_t>);
}

// 2^kKeptBits over a power of two: a subtraction of exponents. REQUIRES: 2^-900 to 2^900.
[[gnu::always_inline]] inline Eight<double> scale_of(Eight<double> power) {
  constexpr std::uint64_t kQuotient = std::uint64_t{2 * 1023 + kKeptBits} << 52;
  return as_bits<Eight<double>>(kQuotient - as_bits<Eight<std::uint64_t>>(power));
}

// Which columns of A, and rows of B, take part: all, or alternate pairs.
enum class Part : std::uint8_t { all, even_pairs, odd_pairs };

constexpr bool takes_part(Part part, int p) {
  return part == Part::all || (p / 2 % 2 == 0) == (part == Part::even_pairs);
}

// d = the truncated sum of d and of the products of a and b, laid out as for multiply(). `powers_*`
// are those of the elements. All values must be finite.
//
// In units of the last kept place each term is below 2^26, as products of significands are below 4,
// so that a sum of 31 terms fits in 32 bits.
template <Part part, int m, int n, int k, int width>
[[gnu::always_inline]] inline void add_truncated(const double (&a)[m * k], const double (&b)[n * k],
                                                 const double (&powers_a)[m * k],
                                                 const double (&powers_b)[n * k],
                                                 const double (&powers_d)[m * n],
                                                 double (&d)[m * n]) {
  constexpr int rows = kRowsAtOnce, blocks = n / 8;
  static_assert((part == Part::all ? k : k / 2) < 31);
  const auto is_taken = [](int p) { return takes_part(part, p); };
  const Eight<double> no_power{}, least_top = no_power + 0x1p-600;  // of a sum of nothing but zeros
#pragma GCC unroll 1
  for (int i = 0; i < m; i += rows) {
    Eight<double> top[rows][blocks], scale[rows][blocks];
    Eight<std::int32_t> sum[rows][blocks];
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j) {
        top[r][j] = larger<double>(load<Eight<double>>(&powers_d[(i + r) * n + 8 * j]), least_top);
      }
    }
    for_each_product<m, n, k, width>(
        i, powers_a, powers_b, is_taken,
        [&](Eight<double> x, Eight<double> y, int r, int j)
            __attribute__((always_inline)) { top[r][j] = larger<double>(top[r][j], x * y); });
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j) {
        scale[r][j] = scale_of(top[r][j]);
        sum[r][j] = truncated(load<Eight<double>>(&d[(i + r) * n + 8 * j]) * scale[r][j]);
      }
    }
    for_each_product<m, n, k, width>(
        i, a, b, is_taken,
        [&](Eight<double> x, Eight<double> y, int r, int j)
            __attribute__((always_inline)) { sum[r][j] += truncated(x * y * scale[r][j]); });
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j) {
        constexpr double kLastPlace = 1.0 / (1 << kKeptBits);
        const auto whole = __builtin_convertvector(sum[r][j], Eight<double>);
        store(&d[(i + r) * n + 8 * j], whole * (top[r][j] * kLastPlace));
      }
    }
  }
}

// Converts to float, rounding towards zero; infinite from 2^128 on.
[[gnu::always_inline]] inline Eight<float> float_towards_zero(Eight<double> x) {
  const auto nearest = __builtin_convertvector(x, Eight<float>);
  const auto bits = as_bits<Eight<std::int32_t>>(nearest);
  const auto back = __builtin_convertvector(nearest, Eight<double>);
  const auto magnitude = [](Eight<double> v) __attribute__((always_inline)) {
    return v < 0 ? -v : v;
  };
  const Eight<double> zero{}, end = zero + 0x1p128;
  // Subtracting one gives the next float towards zero, for either sign.
  const auto too_far = (magnitude(back) > magnitude(x)) & (magnitude(x) < end);
  return as_bits<Eight<float>>(bits + __builtin_convertvector(too_far, Eight<std::int32_t>));
}

template <int count>
[[gnu::always_inline]] inline bool all_finite(const double (&x)[count]) {
  constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;
  Eight<std::int64_t> found{};
  for (int i = 0; i < count; i += 8) {
    const auto bits = load<Eight<std::uint64_t>>(x + i) & kExponent;
    found |= bits == kExponent;
  }
  std::int64_t any = 0;
  for (int j = 0; j < 8; ++j) any |= found[j];
  return any == 0;
}

}  // namespace assay::sim
