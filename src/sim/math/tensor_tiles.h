// Converts fragments to small matrices and back, and multiplies those. Shared by the tensor_*.cpp
// files.
//
// Written with GCC's vector types, eight columns at a time, because compilers unroll loops of eight
// before they try to vectorise them, and then fail to. Works with any vector length of the machine.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/math/tensor.h"

// Vectors longer than the machine's are passed in memory, so all functions that take one are
// inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace assay::sim {

static_assert(std::endian::native == std::endian::little,
              "registers are read as arrays of elements");

template <class T, int count>
struct VectorOf {
  typedef T Type __attribute__((vector_size(count * sizeof(T))));
};
template <class T>
using Four = typename VectorOf<T, 4>::Type;
template <class T>
using Eight = typename VectorOf<T, 8>::Type;

template <class Vector>
[[gnu::always_inline]] inline Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class Vector>
[[gnu::always_inline]] inline void store(void* to, Vector v) {
  std::memcpy(to, &v, sizeof v);
}

// The same bits, as another vector. Unlike std::bit_cast it is never a call, whatever the compiler
// thinks of the size of its caller.
template <class To, class From>
[[gnu::always_inline]] inline To as_bits(From v) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, v);
}

// The registers of A in sequence: tile by tile, each row-major. `count`: number of registers.
template <class Element, int count, class Lanes>
[[gnu::always_inline]] inline void concatenate(
    const Lanes* const* registers, Element (&to)[count * sizeof(Lanes) / sizeof(Element)]) {
  for (int r = 0; r < count; ++r) {
    std::memcpy(reinterpret_cast<std::byte*>(to) + r * sizeof(Lanes), registers[r], sizeof(Lanes));
  }
}

// B, whose view is transposed, by rows: to[block of 8 columns][k][column]. Elements of at most 32
// bits.
template <int n, int k, int bits>
[[gnu::always_inline]] inline void unpack_b(const Lanes32* const* registers,
                                            std::uint32_t (&to)[n * k]) {
  using Sixteen = typename VectorOf<std::uint32_t, 16>::Type;
  constexpr int per_word = 32 / bits, width = tile_width(bits);
  constexpr std::uint32_t mask = bits == 32 ? ~0u : (1u << bits % 32) - 1;
  for (int t = 0; t < n * k / (8 * width); ++t) {
    std::uint32_t* tile = to + t * 8 * width;
    const auto low = load<Sixteen>(registers[t]->v), high = load<Sixteen>(registers[t]->v + 16);
    // The first lane of each group of four, the second, ...
    const Eight<std::uint32_t> words[4] = {
        __builtin_shufflevector(low, high, 0, 4, 8, 12, 16, 20, 24, 28),
        __builtin_shufflevector(low, high, 1, 5, 9, 13, 17, 21, 25, 29),
        __builtin_shufflevector(low, high, 2, 6, 10, 14, 18, 22, 26, 30),
        __builtin_shufflevector(low, high, 3, 7, 11, 15, 19, 23, 27, 31)};
    for (int w = 0; w < 4; ++w) {
      for (int e = 0; e < per_word; ++e) {
        store(tile + 8 * (w * per_word + e), (words[w] >> (e * bits)) & mask);
      }
    }
  }
}

// Accumulators of 32 or 64 bits: a pair of registers per tile. decode(Eight<Word>) gives a row of
// eight.
template <int rows, int cols, class T, class Lanes, class Decode>
[[gnu::always_inline]] inline void unpack_pairs(const Lanes* const* registers,
                                                T (&matrix)[rows * cols], Decode decode) {
  using Word = std::remove_cvref_t<decltype(Lanes::v[0])>;
  for (int t = 0; t < rows * cols / 64; ++t) {
    const TileOrigin at = tile_origin(t, rows, cols, 8);
    for (int g = 0; g < 8; ++g) {
      const auto even = load<Four<Word>>(&registers[2 * t]->v[4 * g]);
      const auto odd = load<Four<Word>>(&registers[2 * t + 1]->v[4 * g]);
      const Eight<Word> row = __builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7);
      store(&matrix[(at.row + g) * cols + at.col], decode(row));
    }
  }
}

template <int rows, int cols, class T, class Lanes, class Encode>
[[gnu::always_inline]] inline void pack_pairs(const T (&matrix)[rows * cols],
                                              Lanes* const* registers, Encode encode) {
  using Word = std::remove_cvref_t<decltype(Lanes::v[0])>;
  for (int t = 0; t < rows * cols / 64; ++t) {
    const TileOrigin at = tile_origin(t, rows, cols, 8);
    for (int g = 0; g < 8; ++g) {
      const Eight<Word> row = encode(load<Eight<T>>(&matrix[(at.row + g) * cols + at.col]));
      const Four<Word> even = __builtin_shufflevector(row, row, 0, 2, 4, 6);
      const Four<Word> odd = __builtin_shufflevector(row, row, 1, 3, 5, 7);
      store(&registers[2 * t]->v[4 * g], even);
      store(&registers[2 * t + 1]->v[4 * g], odd);
    }
  }
}

// x y + z in two operations: for products that are exact in T, so that there is only one rounding.
struct ExactProducts {
  template <class Vector>
  [[gnu::always_inline]] static Vector add(Vector x, Vector y, Vector z) {
    return x * y + z;
  }
};

// A fused multiply-add.
struct FusedProducts {
  [[gnu::always_inline]] static Eight<double> add(Eight<double> x, Eight<double> y,
                                                  Eight<double> z) {
    for (int j = 0; j < 8; ++j) z[j] = std::fma(x[j], y[j], z[j]);
    return z;
  }
};

// Rows of a product computed at a time: enough sums to hide the latency of one.
inline constexpr int kRowsAtOnce = 4;

// Calls body(x, y, r, j) for the products of kRowsAtOnce rows of A, starting at `first`, with B, k
// ascending. x is an element of row first + r, eight times; y is eight columns starting at 8 j.
// Only for columns of A within their tile that takes_part(p) accepts. `a` is a sequence of tiles
// `width` columns wide, as concatenate() leaves them.
template <int m, int n, int k, int width, class T, class TakesPart, class Body>
[[gnu::always_inline]] inline void for_each_product(int first, const T (&a)[m * k],
                                                    const T (&b)[n * k], TakesPart takes_part,
                                                    Body body) {
  constexpr int tiles_across = k / width, blocks = n / 8;
  constexpr int tiles_down = m == 8 ? 1 : 2;  // of a block of A
  const int row_tile = first / 8;
  const int first_tile = row_tile / tiles_down * tiles_down * tiles_across + row_tile % tiles_down;
#pragma GCC unroll 1
  for (int across = 0; across < tiles_across; ++across) {
    const T* at = a + (first_tile + across * tiles_down) * 8 * width + first % 8 * width;
    const T* row_of_b = b + across * width * 8;
#pragma GCC unroll 4
    for (int p = 0; p < width; ++p) {
      if (!takes_part(p)) continue;
      for (int j = 0; j < blocks; ++j) {
        const auto factors = load<Eight<T>>(row_of_b + j * k * 8 + p * 8);
        for (int r = 0; r < kRowsAtOnce; ++r) {
          const T x = at[r * width + p];
          body(Eight<T>{x, x, x, x, x, x, x, x}, factors, r, j);
        }
      }
    }
  }
}

// d += a b, k ascending.
template <class Products, int m, int n, int k, int width, class T>
[[gnu::always_inline]] inline void multiply(const T (&a)[m * k], const T (&b)[n * k],
                                            T (&d)[m * n]) {
  constexpr int rows = kRowsAtOnce, blocks = n / 8;
#pragma GCC unroll 1
  for (int i = 0; i < m; i += rows) {
    Eight<T> sum[rows][blocks];
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j) sum[r][j] = load<Eight<T>>(&d[(i + r) * n + 8 * j]);
    }
    for_each_product<m, n, k, width>(
        i, a, b, [](int) { return true; },
        [&](Eight<T> x, Eight<T> y, int r, int j)
            __attribute__((always_inline)) { sum[r][j] = Products::add(x, y, sum[r][j]); });
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < blocks; ++j) store(&d[(i + r) * n + 8 * j], sum[r][j]);
    }
  }
}

}  // namespace assay::sim
