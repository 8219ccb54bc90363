// Sums as tensor cores compute them; tensor.h says what is known about that and how.
#pragma once

#include <cmath>

#include "sim/math/formats.h"
#include "sim/math/tensor_tiles.h"

namespace assay::sim {

// This many bits after the leading one of a sum's largest term are kept, and of all other terms the
// bits in the same places.
inline constexpr int kKeptBits = 25;

template <class T>
[[gnu::always_inline]] inline Eight<T> larger(Eight<T> a, Eight<T> b) {
  return a > b ? a : b;
}

template <class T>
using Bits = std::conditional_t<std::is_same_v<T, double>, F64, F32>;

// The powers of two for the exponents in an encoding: for a subnormal number that of the smallest
// normal one, `least`; for 0 none.
template <class T, int count>
[[gnu::always_inline]] inline void powers_of_two(const T (&x)[count], T least, T (&powers)[count]) {
  static_assert(count % 8 == 0);
  using Word = typename Bits<T>::Word;
  constexpr Word kExponent = Bits<T>::infinity;
  for (int i = 0; i < count; i += 8) {
    const auto v = load<Eight<T>>(x + i);
    const auto power = as_bits<Eight<T>>(as_bits<Eight<Word>>(v) & kExponent);
    const Eight<T> zero{};
    store(powers + i, v == zero ? zero : larger<T>(power, zero + least));
  }
}

// Which columns of A, and rows of B, take part: all, or alternate pairs.
enum class Part : std::uint8_t { all, even_pairs, odd_pairs };

constexpr bool takes_part(Part part, int p) {
  return part == Part::all || (p / 2 % 2 == 0) == (part == Part::even_pairs);
}

// 2^kKeptBits over a power of two: a subtraction of exponents, of which neither may be subnormal.
template <class T>
[[gnu::always_inline]] inline Eight<T> scale_of(Eight<T> power) {
  using Word = typename Bits<T>::Word;
  constexpr Word kQuotient = Word{2 * Bits<T>::bias + kKeptBits} << Bits<T>::fraction_bits;
  return as_bits<Eight<T>>(kQuotient - as_bits<Eight<Word>>(power));
}

// In units of the last kept place each term is below 2^26, as products of significands are below 4,
// so that a sum of this many terms fits in 32 bits.
inline constexpr int kMostTerms = 31;

// d = the truncated sum of c and of the products of a and b, laid out as for multiply(). `powers_*`
// are those of the elements. With T = double the values may be any that are finite and of at most
// 24 bits. With T = float, which takes less time, they must be moderate.
template <Part part, int m, int n, int k, int width, class T>
[[gnu::always_inline]] inline void add_truncated(const T (&a)[m * k], const T (&b)[n * k],
                                                 const T (&c)[m * n], const T (&powers_a)[m * k],
                                                 const T (&powers_b)[n * k],
                                                 const T (&powers_c)[m * n], double (&d)[m * n]) {
  constexpr int rows = kRowsAtOnce, blocks = n / 8;
  static_assert((part == Part::all ? k : k / 2) < kMostTerms);
  const auto is_taken = [](int p) { return takes_part(part, p); };
  const auto truncated = [](Eight<T> x) __attribute__((always_inline)) {
    return __builtin_convertvector(x, Eight<std::int32_t>);
  };
  // Of a sum of nothing but zeros.
  constexpr T kLeastTop = std::is_same_v<T, double> ? T(0x1p-600) : T(0x1p-100);
  const Eight<T> no_power{}, least_top = no_power + kLeastTop;
#pragma GCC unroll 1
  for (int i = 0; i < m; i += rows) {
    Eight<T> top[rows][blocks], scale[rows][blocks];
    Eight<std::int32_t> sum[rows][blocks];
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j)
        top[r][j] = larger<T>(load<Eight<T>>(&powers_c[(i + r) * n + 8 * j]), least_top);
    }
    for_each_product<m, n, k, width>(
        i, powers_a, powers_b,
        is_taken, [&](Eight<T> x, Eight<T> y, int r, int j) __attribute__((always_inline)) {
          top[r][j] = larger<T>(top[r][j], x * y);
        });
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j) {
        scale[r][j] = scale_of<T>(top[r][j]);
        sum[r][j] = truncated(load<Eight<T>>(&c[(i + r) * n + 8 * j]) * scale[r][j]);
      }
    }
    for_each_product<m, n, k, width>(
        i, a, b,
        is_taken, [&](Eight<T> x, Eight<T> y, int r, int j) __attribute__((always_inline)) {
          sum[r][j] += truncated(x * y * scale[r][j]);
        });
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j) {
        constexpr double kLastPlace = 1.0 / (1 << kKeptBits);
        const auto place = __builtin_convertvector(top[r][j], Eight<double>) * kLastPlace;
        store(&d[(i + r) * n + 8 * j], __builtin_convertvector(sum[r][j], Eight<double>) * place);
      }
    }
  }
}

// Whether all values are 0 or from 2^-e to 2^(e + 1). With e = kModerate for factors of at most 12
// significant bits and 2 kModerate for C, float holds all that add_truncated() computes exactly:
// products from 2^-100 and scales from 2^-77 to 2^125. A scaled term may fall below the range, but
// then it is below 1 by far. Sums are 0 or from 2^-125 to 2^107.
inline constexpr int kModerate = 50;
template <int e, int count>
[[gnu::always_inline]] inline bool are_within(const float (&x)[count]) {
  constexpr std::uint32_t kLow = (127u - e) << 23, kSpan = (2u * e + 1) << 23;
  Eight<std::int32_t> outside{};
  for (int i = 0; i < count; i += 8) {
    const auto magnitude = load<Eight<std::uint32_t>>(x + i) & 0x7fffffffu;
    outside |= (magnitude != 0) & (magnitude - kLow >= kSpan);
  }
  std::int32_t any = 0;
  for (int j = 0; j < 8; ++j) any |= outside[j];
  return any == 0;
}

// Converts to float, rounding towards zero. REQUIRES: 0, or normal as a float.
[[gnu::always_inline]] inline Eight<float> normal_towards_zero(Eight<double> x) {
  constexpr std::uint64_t kDropped = (1u << (F64::fraction_bits - F32::fraction_bits)) - 1;
  const auto kept = as_bits<Eight<double>>(as_bits<Eight<std::uint64_t>>(x) & ~kDropped);
  return __builtin_convertvector(kept, Eight<float>);
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
