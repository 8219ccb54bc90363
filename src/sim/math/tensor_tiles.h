// Fragments to small matrices and back, and the product of those: shared by the tensor_*.cpp files.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/math/tensor.h"

namespace assay::sim {

static_assert(std::endian::native == std::endian::little,
              "registers are read as arrays of elements");

// decode(register, tile, columns of the matrix) writes one tile; the matrix is the fragment's view.
template <int rows, int cols, int block_rows, int width, class T, class Lanes, class Decode>
inline void unpack(const Lanes* const* registers, T (&matrix)[rows][cols], Decode decode) {
#pragma GCC unroll 1
  for (int t = 0; t < rows * cols / (8 * width); ++t) {
    const TileOrigin at = tile_origin(t, block_rows, cols, width);
    decode(*registers[t], &matrix[at.row][at.col], cols);
  }
}

template <int rows, int cols, class T>
inline void transpose(const T (&from)[rows][cols], T (&to)[cols][rows]) {
  for (int c = 0; c < cols; ++c) {
    for (int r = 0; r < rows; ++r) to[c][r] = from[r][c];
  }
}

// Accumulators of 32 or 64 bits: a pair of registers a tile.
template <int rows, int cols, class T, class Lanes, class Decode>
inline void unpack_pairs(const Lanes* const* registers, T (&matrix)[rows][cols], Decode decode) {
  for (int t = 0; t < rows * cols / 64; ++t) {
    const TileOrigin at = tile_origin(t, rows, cols, 8);
    const Lanes &even = *registers[2 * t], &odd = *registers[2 * t + 1];
    for (int g = 0; g < 8; ++g) {
      T* row = &matrix[at.row + g][at.col];
      for (int c = 0; c < 4; ++c) {
        row[2 * c] = decode(even.v[4 * g + c]);
        row[2 * c + 1] = decode(odd.v[4 * g + c]);
      }
    }
  }
}

template <int rows, int cols, class T, class Lanes, class Encode>
inline void pack_pairs(const T (&matrix)[rows][cols], Lanes* const* registers, Encode encode) {
  for (int t = 0; t < rows * cols / 64; ++t) {
    const TileOrigin at = tile_origin(t, rows, cols, 8);
    Lanes &even = *registers[2 * t], &odd = *registers[2 * t + 1];
    for (int g = 0; g < 8; ++g) {
      const T* row = &matrix[at.row + g][at.col];
      for (int c = 0; c < 4; ++c) {
        even.v[4 * g + c] = encode(row[2 * c]);
        odd.v[4 * g + c] = encode(row[2 * c + 1]);
      }
    }
  }
}

// x y + z. With `exact_product` the compiler's choice of one or two operations cannot show, so
// machines without a fused multiply-add take two.
template <bool exact_product, class T>
inline T multiply_add(T x, T y, T z) {
#ifdef __FP_FAST_FMA
  return std::fma(x, y, z);
#else
  if constexpr (exact_product) return x * y + z;
  return std::fma(x, y, z);
#endif
}

// d += a b, k ascending. Four rows at a time: enough sums to hide the latency of one.
template <bool exact_products, int m, int n, int k, class T>
inline void multiply(const T (&a)[m][k], const T (&b)[k][n], T (&d)[m][n]) {
  constexpr int rows = 4;
  for (int i = 0; i < m; i += rows) {
    T sum[rows][n];
    std::memcpy(sum, d[i], sizeof sum);
    for (int p = 0; p < k; ++p) {
      for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < n; ++j) {
          sum[r][j] = multiply_add<exact_products>(a[i + r][p], b[p][j], sum[r][j]);
        }
      }
    }
    std::memcpy(d[i], sum, sizeof sum);
  }
}

}  // namespace assay::sim
