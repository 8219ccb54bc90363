// Products of matrices: sums of 6 rows by a panel of columns stay in registers; the right operand
// is packed in panels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shared/baselines/transpose.h"
#include "vectors.h"

namespace {

#ifdef __AVX512F__
constexpr Index kVectors = 4;  // of a panel
#else
constexpr Index kVectors = 2;
#endif
constexpr Index kRows = 6, kPanel = kLanes * kVectors, kDepth = 256;

// Panels of kPanel columns, [K][width] each; the last one is as wide as the columns left, rounded
// up to whole vectors.
Index rounded(Index n) { return (n + kLanes - 1) / kLanes * kLanes; }
Index packed_size(Index K, Index N) { return K * rounded(N); }

// B [K, N], rows ld apart.
void pack(Index K, Index N, const float* b, Index ld, float* out) {
  for (Index n = 0; n < N; n += kPanel) {
    const Index cols = std::min(kPanel, N - n), width = rounded(cols);
    for (Index k = 0; k < K; ++k, out += width) {
      for (Index j = 0; j < cols; ++j) out[j] = b[k * ld + n + j];
      for (Index j = cols; j < width; ++j) out[j] = 0;
    }
  }
}

// The same for B given as its transpose [N, K], rows ld apart.
void pack_transposed(Index K, Index N, const float* bt, Index ld, float* out) {
  for (Index n = 0; n < N; n += kPanel) {
    const Index cols = std::min(kPanel, N - n), width = rounded(cols);
    for (Index k0 = 0; k0 < K; k0 += 16) {
      const Index k1 = std::min(K, k0 + 16);
      for (Index j = 0; j < cols; ++j) {
        for (Index k = k0; k < k1; ++k) out[k * width + j] = bt[(n + j) * ld + k];
      }
      for (Index k = k0; k < k1; ++k)
        std::fill(out + k * width + cols, out + (k + 1) * width, 0.0f);
    }
    out += K * width;
  }
}

// Rows [first, first + count) of W [rows, cols], which stand at w: W packed, and its transpose. At
// most kLanes of them, from a multiple of kLanes on; cols is a multiple of kLanes.
void pack_both(const float* w, Index first, Index count, Index rows, Index cols, float* forward,
               float* backward) {
  for (Index n = 0; n < cols; n += kPanel) {
    const Index width = std::min(kPanel, cols - n);
    for (Index r = 0; r < count; ++r)
      copy_vectors(width, w + r * cols + n, backward + n * rows + (first + r) * width);
  }
  const Index panel = first / kPanel * kPanel, width = rounded(std::min(kPanel, rows - panel));
  float* out = forward + panel * cols + (first - panel);
  for (Index k = 0; k < cols; k += kLanes) {
    Vec square[kLanes];
    for (Index r = 0; r < kLanes; ++r) square[r] = r < count ? load(w + r * cols + k) : Vec{};
    transpose_square(square);
    for (Index r = 0; r < kLanes; ++r) store(out + (k + r) * width, square[r]);
  }
}

// C [R, V vectors] (+)= A B; A's element (r, k) stands at a[r rs + k cs].
template <int R, int V>
void tile(Index K, const float* a, Index rs, Index cs, const float* b, float* c, Index ldc,
          Index cols, bool add) {
  Vec s[R][V] = {};
  for (Index k = 0; k < K; ++k) {
    Vec bv[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) bv[v] = load(b + (k * V + v) * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec av = splat(a[r * rs + k * cs]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) s[r][v] += av * bv[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    float* row = c + r * ldc;
    for (int v = 0; v < V; ++v) {
      const Index left = cols - v * kLanes;
      if (left >= kLanes) {
        store(row + v * kLanes, add ? load(row + v * kLanes) + s[r][v] : s[r][v]);
        continue;
      }
      for (Index i = 0; i < left; ++i)
        row[v * kLanes + i] = (add ? row[v * kLanes + i] : 0) + s[r][v][i];
    }
  }
}

using Tile = void (*)(Index, const float*, Index, Index, const float*, float*, Index, Index, bool);

template <int V>
Tile tile_of_rows(Index rows) {
  constexpr Tile kTiles[] = {tile<1, V>, tile<2, V>, tile<3, V>,
                             tile<4, V>, tile<5, V>, tile<6, V>};
  return kTiles[rows - 1];
}

Tile tile_for(Index rows, Index vectors) {
#if defined(__AVX512F__)
  if (vectors == 4) return tile_of_rows<4>(rows);
  if (vectors == 3) return tile_of_rows<3>(rows);
#endif
  return vectors == 2 ? tile_of_rows<2>(rows) : tile_of_rows<1>(rows);
}

// C [M, N] (+)= A [M, K] B, where B is rows [skip, skip + K) of what was packed, packed_K deep if
// that is not K.
void multiply(Index M, Index N, Index K, const float* a, Index rs, Index cs, const float* b,
              float* c, Index ldc, bool add, Index packed_K = 0, Index skip = 0) {
  packed_K = std::max(packed_K, K);
  for (Index n = 0; n < N; n += kPanel) {
    const Index cols = std::min(kPanel, N - n), width = rounded(cols);
    for (Index m = 0; m < M; m += kRows) {
      const Index rows = std::min(kRows, M - m);
      tile_for(rows, width / kLanes)(K, a + m * rs, rs, cs, b + skip * width, c + m * ldc + n, ldc,
                                     cols, add);
    }
    b += packed_K * width;
  }
}

// C [M, N] = A^T B, a sum over K rows; row k of A starts at a(k), that of B at b(k). N is a
// multiple of kLanes. `space` holds kDepth (M + kPanel) floats.
template <class A, class B>
void multiply_transposed(Index M, Index N, Index K, A a, B b, float* c, Index ldc, float* space) {
  for (Index m = 0; m < M && K == 0; ++m) std::fill_n(c + m * ldc, N, 0.0f);
  float* panel = space + kDepth * M;
  for (Index k0 = 0; k0 < K; k0 += kDepth) {
    const Index depth = std::min(kDepth, K - k0);
    for (Index k = 0; k < depth; ++k) {
      const float* row = a(k0 + k);
      Index m = 0;
      for (; m + kRows <= M; m += kRows) std::copy_n(row + m, kRows, space + m * depth + k * kRows);
      std::copy_n(row + m, M - m, space + m * depth + k * (M - m));
    }
    for (Index n = 0; n < N; n += kPanel) {
      const Index width = std::min(kPanel, N - n);
      for (Index k = 0; k < depth; ++k) copy_vectors(width, b(k0 + k) + n, panel + k * width);
      for (Index m = 0; m < M; m += kRows) {
        const Index rows = std::min(kRows, M - m);
        tile_for(rows, width / kLanes)(depth, space + m * depth, 1, rows, panel, c + m * ldc + n,
                                       ldc, width, k0 > 0);
      }
    }
  }
}

}  // namespace
