// f16, bf16, tf32 and fp8 multiplicands with f32 or f16 accumulators, and f64.
#include "sim/math/formats.h"
#include "sim/math/tensor_tiles.h"
#include "sim/math/tensor_truncation.h"

namespace assay::sim {
namespace {

float float_of_half(std::uint32_t x) { return widen(Half{x}); }

float float_of_e4m3(std::uint32_t x) { return widen_fp8<E4m3>(x); }

float float_of_e5m2(std::uint32_t x) { return widen_fp8<E5m2>(x); }

float float_of_bfloat(std::uint32_t x) { return widen(Bfloat{x}); }

float float_of_tf32(std::uint32_t x) { return std::bit_cast<float>(x & ~0x1fffu); }

// D and C of f16: 64 elements per register, row by row.
template <int m, int n>
[[gnu::always_inline]] inline void load_c(const MmaRegisters<Lanes32>& x, bool half,
                                          double (&c)[m * n]) {
  if (!half) {
    return unpack_pairs<m, n>(x.c, c, [](Eight<std::uint32_t> v) {
      return __builtin_convertvector(std::bit_cast<Eight<float>>(v), Eight<double>);
    });
  }
  for (int t = 0; t < m * n / 64; ++t) {
    const TileOrigin at = tile_origin(t, m, n, 8);
    std::uint16_t elements[64];
    std::memcpy(elements, x.c[t], sizeof elements);
    double values[64];
    for (int e = 0; e < 64; ++e) values[e] = float_of_half(elements[e]);
    for (int g = 0; g < 8; ++g)
      std::memcpy(&c[(at.row + g) * n + at.col], values + 8 * g, 8 * sizeof(double));
  }
}

// Stores an exact sum: truncated to f32, or rounded to f16.
template <int m, int n>
[[gnu::always_inline]] inline void store_d(const double (&d)[m * n], bool half,
                                           const MmaRegisters<Lanes32>& x) {
  if (!half) {
    return pack_pairs<m, n>(d, x.d, [](Eight<double> v) {
      const auto bits = std::bit_cast<Eight<std::uint32_t>>(float_towards_zero(v));
      return __builtin_convertvector(v == v, Eight<std::int32_t>) != 0 ? bits : bits * 0 + kNan32;
    });
  }
  for (int t = 0; t < m * n / 64; ++t) {
    const TileOrigin at = tile_origin(t, m, n, 8);
    double values[64];
    for (int g = 0; g < 8; ++g)
      std::memcpy(values + 8 * g, &d[(at.row + g) * n + at.col], 8 * sizeof(double));
    std::uint16_t elements[64];
    for (int e = 0; e < 64; ++e) {
      elements[e] = static_cast<std::uint16_t>(to_half<Half>(values[e]).bits);
    }
    std::memcpy(x.d[t], elements, sizeof elements);
  }
}

template <class Element, float decode(std::uint32_t), int count>
void read_a(const Lanes32* const* registers, double (&a)[count]) {
  Element elements[count];
  concatenate<Element, count * sizeof(Element) / sizeof(Lanes32)>(registers, elements);
  for (int e = 0; e < count; ++e) a[e] = decode(elements[e]);
}

template <class Element, float decode(std::uint32_t), int n, int k>
void read_b(const Lanes32* const* registers, double (&b)[n * k]) {
  std::uint32_t elements[n * k];
  unpack_b<n, k, 8 * sizeof(Element)>(registers, elements);
  for (int e = 0; e < n * k; ++e) b[e] = decode(elements[e]);
}

constexpr double kLeastHalf = 0x1p-14, kLeastFloat = 0x1p-126;  // normal

// d = truncated sums of products and d. least_d is d's least normal number.
template <Part part, class Element, int m, int n, int k>
[[gnu::always_inline]] inline void add_products(const double (&a)[m * k], const double (&b)[n * k],
                                                double least, double least_d, double (&d)[m * n]) {
  double powers_a[m * k], powers_b[n * k], powers_d[m * n];
  powers_of_two(a, least, powers_a);
  powers_of_two(b, least, powers_b);
  powers_of_two(d, least_d, powers_d);
  add_truncated<part, m, n, k, tile_width(8 * sizeof(Element))>(a, b, powers_a, powers_b, powers_d,
                                                                d);
}

template <int count>
void truncate_to_float(double (&d)[count]) {
  for (int i = 0; i < count; i += 8) {
    store(d + i,
          __builtin_convertvector(float_towards_zero(load<Eight<double>>(d + i)), Eight<double>));
  }
}

// fp8 as computed by hardware without fp8 units: as f16, in two parts, C last.
template <int m, int n, int k>
[[gnu::always_inline]] inline void add_in_parts(const double (&a)[m * k], const double (&b)[n * k],
                                                double (&d)[m * n]) {
  double sum[m * n] = {};
  add_products<Part::even_pairs, std::uint8_t, m, n, k>(a, b, kLeastHalf, kLeastFloat, sum);
  truncate_to_float(sum);
  add_products<Part::odd_pairs, std::uint8_t, m, n, k>(a, b, kLeastHalf, kLeastFloat, sum);
  truncate_to_float(sum);
  for (int i = 0; i < m * n; ++i) d[i] = static_cast<float>(d[i]) + static_cast<float>(sum[i]);
}

template <class Element, int m, int n, int k>
[[gnu::always_inline]] inline void add_finite(const double (&a)[m * k], const double (&b)[n * k],
                                              double least, bool half_c, double (&d)[m * n]) {
  if constexpr (sizeof(Element) == 1 && k == 32) {
    add_in_parts<m, n, k>(a, b, d);
  } else {
    add_products<Part::all, Element, m, n, k>(a, b, least, half_c ? kLeastHalf : kLeastFloat, d);
  }
}

template <int count>
void keep_finite(double (&x)[count]) {
  for (double& v : x) v = std::isfinite(v) ? v : 0;
}

// If anything is infinite or NaN, IEEE arithmetic determines which elements are too.
template <class Element, int m, int n, int k>
void add_not_finite(double (&a)[m * k], double (&b)[n * k], double least, bool half_c,
                    double (&d)[m * n]) {
  double plain[m * n];
  std::memcpy(plain, d, sizeof plain);
  multiply<ExactProducts, m, n, k, tile_width(8 * sizeof(Element))>(a, b, plain);
  keep_finite(a);
  keep_finite(b);
  keep_finite(d);
  add_finite<Element, m, n, k>(a, b, least, half_c, d);
  for (int i = 0; i < m * n; ++i) d[i] = std::isfinite(plain[i]) ? d[i] : plain[i];
}

template <class Element, int m, int n, int k>
void finish(const MmaRegisters<Lanes32>& x, const MmaMode& mode, double (&a)[m * k],
            double (&b)[n * k], double least) {
  double d[m * n];
  load_c<m, n>(x, mode.half_c, d);
  if (all_finite(a) && all_finite(b) && all_finite(d)) [[likely]] {
    add_finite<Element, m, n, k>(a, b, least, mode.half_c, d);
  } else {
    add_not_finite<Element, m, n, k>(a, b, least, mode.half_c, d);
  }
  store_d<m, n>(d, mode.half_d, x);
}

template <class Element, float decode(std::uint32_t), int m, int n, int k>
void mma(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  double a[m * k], b[n * k];
  read_a<Element, decode>(x.a, a);
  read_b<Element, decode, n, k>(x.b, b);
  finish<Element, m, n, k>(x, mode, a, b, mode.a == TensorType::f16 ? kLeastHalf : kLeastFloat);
}

template <int m, int n, int k>
void mma_fp8(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  double a[m * k], b[n * k];
  if (mode.a == TensorType::e4m3) {
    read_a<std::uint8_t, float_of_e4m3>(x.a, a);
  } else {
    read_a<std::uint8_t, float_of_e5m2>(x.a, a);
  }
  if (mode.b == TensorType::e4m3) {
    read_b<std::uint8_t, float_of_e4m3, n, k>(x.b, b);
  } else {
    read_b<std::uint8_t, float_of_e5m2, n, k>(x.b, b);
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
        b[8 * (4 * t + p) + j] = std::bit_cast<double>(x.b[t]->v[4 * j + p]);
    }
  }
  unpack_pairs<m, n>(x.c, d,
                     [](Eight<std::uint64_t> v) { return std::bit_cast<Eight<double>>(v); });
  multiply<FusedProducts, m, n, k, 4>(a, b, d);
  pack_pairs<m, n>(d, x.d, [](Eight<double> v) {
    const auto bits = std::bit_cast<Eight<std::uint64_t>>(v);
    return v == v ? bits : bits * 0 + kNan64;
  });
}

template <float decode(std::uint32_t)>
Mma32 find_16_bit(MmaShape s) {
  if (s == MmaShape{16, 8, 8}) return mma<std::uint16_t, decode, 16, 8, 8>;
  if (s == MmaShape{16, 8, 16}) return mma<std::uint16_t, decode, 16, 8, 16>;
  if (s == MmaShape{16, 16, 16}) return mma<std::uint16_t, decode, 16, 16, 16>;
  if (s == MmaShape{32, 8, 16}) return mma<std::uint16_t, decode, 32, 8, 16>;
  return nullptr;
}

}  // namespace

Mma32 find_float_mma(TensorType type, MmaShape s) {
  switch (type) {
    case TensorType::f16: return find_16_bit<float_of_half>(s);
    case TensorType::bf16: return find_16_bit<float_of_bfloat>(s);
    case TensorType::tf32:
      if (s == MmaShape{16, 8, 4}) return mma<std::uint32_t, float_of_tf32, 16, 8, 4>;
      if (s == MmaShape{16, 8, 8}) return mma<std::uint32_t, float_of_tf32, 16, 8, 8>;
      if (s == MmaShape{16, 16, 8}) return mma<std::uint32_t, float_of_tf32, 16, 16, 8>;
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
