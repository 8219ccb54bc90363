// The two products, queries in the lanes, and the exponential.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16, kColumns = 4;
#elif defined(__AVX__)
constexpr int kWidth = 8, kColumns = 2;
#else
constexpr int kWidth = 4, kColumns = 2;
#endif
using Vec [[gnu::vector_size(kWidth * 4)]] = float;
using Int [[gnu::vector_size(kWidth * 4)]] = std::int32_t;

constexpr std::int64_t kRows = 64;  // queries of a tile, all lanes of it
constexpr std::int64_t kKeys = 64;  // keys of a tile
constexpr int kVectors = kRows / kWidth, kBlock = 6;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896341f;
constexpr double kLn2 = 0.693147180559945309;

Vec splat(float x) { return x - Vec{}; }
Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
Vec select(Int mask, Vec a, Vec b) { return mask ? a : b; }

// 2^x within 2 ulp for x <= 0; 0 below -126; NaN stays.
Vec exp2_of(Vec x) {
  const Vec magic = splat(12582912.0f);  // 1.5 2^23: adding it rounds to an integer
  const Vec shifted = x + magic;
  const Vec f = x - (shifted - magic);
  Vec y = splat(1.53533906e-4f);
  y = y * f + splat(1.33988744e-3f);
  y = y * f + splat(9.61817801e-3f);
  y = y * f + splat(5.55036031e-2f);
  y = y * f + splat(2.40226507e-1f);
  y = y * f + splat(6.93147182e-1f);
  y = y * f + splat(1.0f);
  const Int exponent = reinterpret_cast<Int>(shifted) << 23;
  const Vec scaled = reinterpret_cast<Vec>(reinterpret_cast<Int>(y) + exponent);
  return select(x < splat(-126.0f), Vec{}, select(x == x, scaled, x));
}

// c[r][lanes] (=|+=) sum_t a[r * a_row + t * a_step] * b[t][lanes] for R rows; with kAdd, c is
// first multiplied by `keep` [lanes].
template <int R, bool kAdd>
void block(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
           std::int64_t steps, float* c, const float* keep) {
  for (std::int64_t lane = 0; lane < kRows; lane += kColumns * kWidth) {
    Vec sum[R][kColumns];
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < kColumns; ++v) {
        const std::int64_t at = lane + v * kWidth;
        sum[r][v] = kAdd ? load(c + r * kRows + at) * load(keep + at) : Vec{};
      }
    }
    const float* row = b + lane;
    const float* x = a;
    for (std::int64_t t = 0; t < steps; ++t, row += kRows, x += a_step) {
      Vec y[kColumns];
      for (int v = 0; v < kColumns; ++v) y[v] = load(row + v * kWidth);
      for (int r = 0; r < R; ++r) {
        const Vec s = splat(x[r * a_row]);
        for (int v = 0; v < kColumns; ++v) sum[r][v] += s * y[v];
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < kColumns; ++v) store(c + r * kRows + lane + v * kWidth, sum[r][v]);
    }
  }
}

template <bool kAdd>
void product(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
             std::int64_t steps, float* c, std::int64_t rows, const float* keep) {
  std::int64_t r = 0;
  for (; r + kBlock <= rows; r += kBlock) {
    block<kBlock, kAdd>(a + r * a_row, a_row, a_step, b, steps, c + r * kRows, keep);
  }
  const float* rest = a + r * a_row;
  float* out = c + r * kRows;
  switch (rows - r) {
    case 5: block<5, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 4: block<4, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 3: block<3, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 2: block<2, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 1: block<1, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    default: break;
  }
}

}  // namespace
