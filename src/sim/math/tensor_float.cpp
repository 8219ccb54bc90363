// f16, bf16, tf32 and fp8 multiplicands with f32 or f16 accumulators, and f64.
#include "sim/math/formats.h"
#include "sim/math/tensor_tiles.h"
#include "sim/math/tensor_truncation.h"

namespace assay::sim {
namespace {

using Words = Eight<std::uint32_t>;

// The values of eight numbers in a format of few bits, each in the low bits of a word. Like widen()
// in formats.h, but written for vectors: where much is inlined, calls for one number stay calls.
template <class F>
[[gnu::always_inline]] inline Eight<float> values_of(Words x) {
  const Words magnitude = x & (F::sign - 1);
  const Words shifted = magnitude << (23 - F::fraction_bits);
  // A subnormal number is the fraction of a float of the least exponent, less its leading bit.
  constexpr std::uint32_t kLeast = 127 - F::bias + 1;
  constexpr float kLeading = 1.0f / (1 << (F::bias - 1));
  const Words subnormal =
      as_bits<Words>(as_bits<Eight<float>>(shifted + (kLeast << 23)) - kLeading);
  const Words normal = shifted + ((127 - F::bias) << 23);
  Words bits = magnitude < F::min_normal ? subnormal : normal;
  const Words zero{};
  if constexpr (std::is_same_v<F, E4m3>) {
    bits = magnitude == F::infinity ? zero + kNan32 : bits;
  } else {
    bits = magnitude == F::infinity ? zero + F32::infinity : bits;
    bits = magnitude > F::infinity ? zero + kNan32 : bits;
  }
  constexpr int kToSign = 31 - F::exponent_bits - F::fraction_bits;
  bits |= (x & F::sign) << kToSign;
  return as_bits<Eight<float>>(bits);
}

template <>
[[gnu::always_inline]] inline Eight<float> values_of<Bf16>(Words x) {
  return as_bits<Eight<float>>(x << 16);
}

template <>
[[gnu::always_inline]] inline Eight<float> values_of<Tf32>(Words x) {
  return as_bits<Eight<float>>(x & ~0x1fffu);
}

// Rounds to f16, nearest even. Values are sums of few bits, so nothing was rounded before.
[[gnu::always_inline]] inline Words nearest_halves(Eight<double> x) {
  constexpr std::uint64_t kSign = F64::sign, kExponent = F64::infinity;
  const auto bits = as_bits<Eight<std::uint64_t>>(x);
  const auto magnitude = as_bits<Eight<double>>(bits & (kSign - 1));
  const Eight<double> zero{}, least = zero + 0x1p-14;
  const auto power = larger<double>(as_bits<Eight<double>>(bits & kExponent), least);
  // Adding 2^52 units of the last place, and one half more so that the exponent stays, rounds to it.
  const Eight<double> shift = power * (0x1.8p52 / (1 << F16::fraction_bits));
  const Eight<double> rounded = (magnitude + shift) - shift;
  // Exact: at most 11 bits. From 2^16 on it is infinite, as is a NaN until the end.
  const auto narrow = as_bits<Words>(__builtin_convertvector(rounded, Eight<float>));
  const Words none{};
  const Words normal = (narrow >> 13) - ((127 - F16::bias) << F16::fraction_bits);
  const Words subnormal = __builtin_convertvector(
      __builtin_convertvector(rounded * 0x1p24, Eight<std::int32_t>), Words);
  Words out = narrow < ((127u - F16::bias + 1) << 23) ? subnormal : normal;
  out = narrow >= ((127u + F16::bias + 1) << 23) ? none + F16::infinity : out;
  out |= __builtin_convertvector((bits & kSign) >> 48, Words);
  return __builtin_convertvector(x == x, Eight<std::int32_t>) != 0 ? out : none + kNan16;
}

// D and C of f16: 64 elements per register, row by row.
template <int m, int n>
[[gnu::always_inline]] inline void load_c(const MmaRegisters<Lanes32>& x, bool half,
                                          float (&c)[m * n]) {
  if (!half) {
    return unpack_pairs<m, n>(
        x.c, c, [](Words v) __attribute__((always_inline)) { return as_bits<Eight<float>>(v); });
  }
  for (int t = 0; t < m * n / 64; ++t) {
    const TileOrigin at = tile_origin(t, m, n, 8);
    for (int g = 0; g < 8; ++g) {
      const auto row = load<Eight<std::uint16_t>>(&x.c[t]->v[4 * g]);
      store(&c[(at.row + g) * n + at.col], values_of<F16>(__builtin_convertvector(row, Words)));
    }
  }
}

// Stores an exact sum: truncated to f32, or rounded to f16. Moderate sums are finite and normal.
template <bool moderate, int m, int n>
[[gnu::always_inline]] inline void store_d(const double (&d)[m * n], bool half,
                                           const MmaRegisters<Lanes32>& x) {
  if (!half && moderate) {
    return pack_pairs<m, n>(
        d, x.d, [](Eight<double> v) __attribute__((always_inline)) {
          return as_bits<Words>(normal_towards_zero(v));
        });
  }
  if (!half) {
    return pack_pairs<m, n>(
        d, x.d, [](Eight<double> v) __attribute__((always_inline)) {
          const auto bits = as_bits<Words>(float_towards_zero(v));
          return __builtin_convertvector(v == v, Eight<std::int32_t>) != 0 ? bits
                                                                           : bits * 0 + kNan32;
        });
  }
  for (int t = 0; t < m * n / 64; ++t) {
    const TileOrigin at = tile_origin(t, m, n, 8);
    for (int g = 0; g < 8; ++g) {
      const Words row = nearest_halves(load<Eight<double>>(&d[(at.row + g) * n + at.col]));
      store(&x.d[t]->v[4 * g], __builtin_convertvector(row, Eight<std::uint16_t>));
    }
  }
}

// The elements of A, which fill words of their own size.
template <class F, class Element, int count>
[[gnu::always_inline]] inline void read_a(const Lanes32* const* registers, float (&a)[count]) {
  Element elements[count];
  concatenate<Element, count * sizeof(Element) / sizeof(Lanes32)>(registers, elements);
  for (int e = 0; e < count; e += 8) {
    const auto eight = load<Eight<Element>>(elements + e);
    store(a + e, values_of<F>(__builtin_convertvector(eight, Words)));
  }
}

template <class F, class Element, int n, int k>
[[gnu::always_inline]] inline void read_b(const Lanes32* const* registers, float (&b)[n * k]) {
  std::uint32_t elements[n * k];
  unpack_b<n, k, 8 * sizeof(Element)>(registers, elements);
  for (int e = 0; e < n * k; e += 8) store(b + e, values_of<F>(load<Words>(elements + e)));
}

// The least normal numbers of the types of factors and of C.
struct Least {
  float factor, addend;
};
constexpr float kLeastHalf = 0x1p-14f, kLeastFloat = 0x1p-126f;

// d = truncated sums of products and c. T is float for moderate values, double for any.
template <Part part, class Element, int m, int n, int k, class T>
[[gnu::always_inline]] inline void add_products(const T (&a)[m * k], const T (&b)[n * k],
                                                const T (&c)[m * n], Least least,
                                                double (&d)[m * n]) {
  T powers_a[m * k], powers_b[n * k], powers_c[m * n];
  powers_of_two<T>(a, least.factor, powers_a);
  powers_of_two<T>(b, least.factor, powers_b);
  powers_of_two<T>(c, least.addend, powers_c);
  add_truncated<part, m, n, k, tile_width(8 * sizeof(Element))>(a, b, c, powers_a, powers_b,
                                                                powers_c, d);
}

template <class T, int count>
[[gnu::always_inline]] inline void truncate_to_float(const double (&d)[count], T (&to)[count]) {
  for (int i = 0; i < count; i += 8) {
    const auto v = load<Eight<double>>(d + i);
    if constexpr (std::is_same_v<T, float>) {
      store(to + i, normal_towards_zero(v));
    } else {
      store(to + i, __builtin_convertvector(float_towards_zero(v), Eight<T>));
    }
  }
}

// fp8 as computed by hardware without fp8 units: as f16, in two parts, C last.
template <int m, int n, int k, class T>
[[gnu::always_inline]] inline void add_in_parts(const T (&a)[m * k], const T (&b)[n * k],
                                                const T (&c)[m * n], double (&d)[m * n]) {
  constexpr Least least{kLeastHalf, kLeastFloat};
  T sum[m * n] = {};
  add_products<Part::even_pairs, std::uint8_t, m, n, k>(a, b, sum, least, d);
  truncate_to_float(d, sum);
  add_products<Part::odd_pairs, std::uint8_t, m, n, k>(a, b, sum, least, d);
  truncate_to_float(d, sum);
  for (int i = 0; i < m * n; ++i) d[i] = static_cast<float>(c[i]) + static_cast<float>(sum[i]);
}

template <class Element, int m, int n, int k, class T>
[[gnu::always_inline]] inline void add_finite(const T (&a)[m * k], const T (&b)[n * k],
                                              const T (&c)[m * n], Least least,
                                              double (&d)[m * n]) {
  if constexpr (sizeof(Element) == 1 && k == 32) {
    add_in_parts<m, n, k>(a, b, c, d);
  } else {
    add_products<Part::all, Element, m, n, k>(a, b, c, least, d);
  }
}

template <int count>
void keep_finite(double (&x)[count]) {
  for (double& v : x) v = std::isfinite(v) ? v : 0;
}

template <int count>
void widen(const float (&x)[count], double (&to)[count]) {
  for (int i = 0; i < count; ++i) to[i] = static_cast<double>(x[i]);
}

// For all values. If anything is infinite or NaN, IEEE arithmetic determines which elements are too.
template <class Element, int m, int n, int k>
[[gnu::noinline]] void add_any(const float (&a)[m * k], const float (&b)[n * k],
                               const float (&c)[m * n], Least least, double (&d)[m * n]) {
  double x[m * k], y[n * k], z[m * n];
  widen(a, x);
  widen(b, y);
  widen(c, z);
  if (all_finite(x) && all_finite(y) && all_finite(z))
    return add_finite<Element, m, n, k>(x, y, z, least, d);
  double plain[m * n];
  std::memcpy(plain, z, sizeof plain);
  multiply<ExactProducts, m, n, k, tile_width(8 * sizeof(Element))>(x, y, plain);
  keep_finite(x);
  keep_finite(y);
  keep_finite(z);
  add_finite<Element, m, n, k>(x, y, z, least, d);
  for (int i = 0; i < m * n; ++i) d[i] = std::isfinite(plain[i]) ? d[i] : plain[i];
}

template <class Element, int m, int n, int k>
[[gnu::always_inline]] inline void finish(const MmaRegisters<Lanes32>& x, const MmaMode& mode,
                                          const float (&a)[m * k], const float (&b)[n * k],
                                          float least_factor) {
  float c[m * n];
  double d[m * n];
  load_c<m, n>(x, mode.half_c, c);
  const Least least{least_factor, mode.half_c ? kLeastHalf : kLeastFloat};
  if (are_within<kModerate>(a) && are_within<kModerate>(b) && are_within<2 * kModerate>(c))
      [[likely]] {
    add_finite<Element, m, n, k>(a, b, c, least, d);
    store_d<true, m, n>(d, mode.half_d, x);
  } else {
    add_any<Element, m, n, k>(a, b, c, least, d);
    store_d<false, m, n>(d, mode.half_d, x);
  }
}

template <class F, class Element, int m, int n, int k>
void mma(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  float a[m * k], b[n * k];
  read_a<F, Element>(x.a, a);
  read_b<F, Element, n, k>(x.b, b);
  finish<Element, m, n, k>(x, mode, a, b, mode.a == TensorType::f16 ? kLeastHalf : kLeastFloat);
}

template <int m, int n, int k>
void mma_fp8(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  float a[m * k], b[n * k];
  if (mode.a == TensorType::e4m3) {
    read_a<E4m3, std::uint8_t>(x.a, a);
  } else {
    read_a<E5m2, std::uint8_t>(x.a, a);
  }
  if (mode.b == TensorType::e4m3) {
    read_b<E4m3, std::uint8_t, n, k>(x.b, b);
  } else {
    read_b<E5m2, std::uint8_t, n, k>(x.b, b);
  }
  finish<std::uint8_t, m, n, k>(x, mode, a, b, kLeastHalf);
}

template <int m, int n, int k>
void mma_f64(const MmaRegisters<Lanes64>& x) {
  double a[m * k], b[n * k], d[m * n];
  static_assert(n == 8);
  concatenate<double, m * k / 32>(x.a, a);
  for (int t = 0; t < k / 4; ++t) {
    for (int p = 0; p < 4; ++p) {
      for (int j = 0; j < 8; ++j)
        std::memcpy(&b[8 * (4 * t + p) + j], &x.b[t]->v[4 * j + p], sizeof(double));
    }
  }
  unpack_pairs<m, n>(
      x.c, d, [](Eight<std::uint64_t> v) __attribute__((always_inline)) {
        return as_bits<Eight<double>>(v);
      });
  multiply<FusedProducts, m, n, k, 4>(a, b, d);
  pack_pairs<m, n>(
      d, x.d, [](Eight<double> v) __attribute__((always_inline)) {
        const auto bits = as_bits<Eight<std::uint64_t>>(v);
        return v == v ? bits : bits * 0 + kNan64;
      });
}

template <class F>
Mma32 find_16_bit(MmaShape s) {
  if (s == MmaShape{16, 8, 8}) return mma<F, std::uint16_t, 16, 8, 8>;
  if (s == MmaShape{16, 8, 16}) return mma<F, std::uint16_t, 16, 8, 16>;
  if (s == MmaShape{16, 16, 16}) return mma<F, std::uint16_t, 16, 16, 16>;
  if (s == MmaShape{32, 8, 16}) return mma<F, std::uint16_t, 32, 8, 16>;
  return nullptr;
}

}  // namespace

Mma32 find_float_mma(TensorType type, MmaShape s) {
  switch (type) {
    case TensorType::f16: return find_16_bit<F16>(s);
    case TensorType::bf16: return find_16_bit<Bf16>(s);
    case TensorType::tf32:
      if (s == MmaShape{16, 8, 4}) return mma<Tf32, std::uint32_t, 16, 8, 4>;
      if (s == MmaShape{16, 8, 8}) return mma<Tf32, std::uint32_t, 16, 8, 8>;
      if (s == MmaShape{16, 16, 8}) return mma<Tf32, std::uint32_t, 16, 16, 8>;
      return nullptr;
    case TensorType::e4m3:
    case TensorType::e5m2:
      if (s == MmaShape{16, 8, 16}) return mma_fp8<16, 8, 16>;
      if (s == MmaShape{16, 8, 32}) return mma_fp8<16, 8, 32>;
      return nullptr;
    default: return nullptr;
  }
}

Mma64 find_mma64(MmaShape s) {
  if (s == MmaShape{8, 8, 4}) return mma_f64<8, 8, 4>;
  if (s == MmaShape{16, 8, 4}) return mma_f64<16, 8, 4>;
  if (s == MmaShape{16, 8, 8}) return mma_f64<16, 8, 8>;
  if (s == MmaShape{16, 8, 16}) return mma_f64<16, 8, 16>;
  return nullptr;
}

}  // namespace assay::sim
