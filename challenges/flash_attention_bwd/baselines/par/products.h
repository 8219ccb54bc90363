// The one form of all five products, and the exponential.
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
using Unaligned [[gnu::vector_size(kWidth * 4), gnu::aligned(4), gnu::may_alias]] = float;

constexpr std::int64_t kTile = 64;  // queries and keys of a tile
constexpr int kBlock = 6;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896341f;

Vec splat(float x) { return x - Vec{}; }
Vec load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Unaligned*>(p) = v; }

// 2^x within 2 ulp; 0 below -126; NaN stays.
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
  const Vec finite = x < splat(-126.0f) ? Vec{} : scaled;
  return x == x ? finite : x;
}

// One factor of a product as scalars a[r * row + t * step], the other as rows b + t * step.
struct Scalars {
  const float* data;
  std::int64_t row, step;
};
struct Rows {
  const float* data;
  std::int64_t step;
};

template <int R, int C, bool kAdd>
void block(Scalars a, Rows b, std::int64_t steps, float* c, std::int64_t c_row) {
  Vec sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) sum[r][v] = kAdd ? load(c + r * c_row + v * kWidth) : Vec{};
  }
  const float *x = a.data, *row = b.data;
  for (std::int64_t t = 0; t < steps; ++t, x += a.step, row += b.step) {
    Vec y[C];
    for (int v = 0; v < C; ++v) y[v] = load(row + v * kWidth);
    for (int r = 0; r < R; ++r) {
      const Vec s = splat(x[r * a.row]);
      for (int v = 0; v < C; ++v) sum[r][v] += s * y[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) store(c + r * c_row + v * kWidth, sum[r][v]);
  }
}

template <int C, bool kAdd>
void columns(Scalars a, Rows b, std::int64_t steps, float* c, std::int64_t c_row,
             std::int64_t rows) {
  std::int64_t r = 0;
  for (; r + kBlock <= rows; r += kBlock) {
    block<kBlock, C, kAdd>({a.data + r * a.row, a.row, a.step}, b, steps, c + r * c_row, c_row);
  }
  const Scalars rest{a.data + r * a.row, a.row, a.step};
  float* out = c + r * c_row;
  switch (rows - r) {
    case 5: block<5, C, kAdd>(rest, b, steps, out, c_row); break;
    case 4: block<4, C, kAdd>(rest, b, steps, out, c_row); break;
    case 3: block<3, C, kAdd>(rest, b, steps, out, c_row); break;
    case 2: block<2, C, kAdd>(rest, b, steps, out, c_row); break;
    case 1: block<1, C, kAdd>(rest, b, steps, out, c_row); break;
    default: break;
  }
}

// c[r][lanes] (=|+=) sum_t a[r, t] b[t][lanes]; lanes is a multiple of kWidth.
template <bool kAdd>
void product(Scalars a, Rows b, std::int64_t steps, float* c, std::int64_t c_row, std::int64_t rows,
             std::int64_t lanes) {
  std::int64_t lane = 0;
  for (; lane + kColumns * kWidth <= lanes; lane += kColumns * kWidth) {
    columns<kColumns, kAdd>(a, {b.data + lane, b.step}, steps, c + lane, c_row, rows);
  }
  for (; lane < lanes; lane += kWidth)
    columns<1, kAdd>(a, {b.data + lane, b.step}, steps, c + lane, c_row, rows);
}

}  // namespace
