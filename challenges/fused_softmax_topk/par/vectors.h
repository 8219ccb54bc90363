// Vectors of 16 floats, and how a row is cut into groups of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr int kLanes = 16;
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kLanes)));

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kGroupVectors = 8;
constexpr std::int64_t kGroup = kGroupVectors * kLanes;  // elements with common maxima
constexpr std::int64_t kBlockGroups = 32;                // per update of the maximum
constexpr std::int64_t kBatchGroups = 512;               // per selection: 64 Ki elements

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

Vec splat(float f) { return f - Vec{}; }
Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// 2^t: a polynomial for the fraction of t in [0, 1), relative error 1.5e-7. NaN stays, -inf gives
// 0.
Vec exp2_vector(Vec t) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  const Vec r =
      std::bit_cast<Vec>(_mm512_reduce_ps(std::bit_cast<__m512>(t), _MM_FROUND_TO_NEG_INF));
#else
  t = t < -126.0f ? splat(-126.0f) : t;
  t = t > 127.0f ? splat(127.0f) : t;
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23 rounds to integer
  const Vec nearest = (t + magic) - magic;
  const Vec floor = nearest > t ? nearest - 1.0f : nearest;
  const Vec r = t - floor;
#endif
  Vec y = splat(1.87757669e-3f);
  y = y * r + 8.98933969e-3f;
  y = y * r + 5.58263175e-2f;
  y = y * r + 2.40153611e-1f;
  y = y * r + 6.93153083e-1f;
  y = y * r + 9.9999994e-1f;
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  return std::bit_cast<Vec>(_mm512_scalef_ps(std::bit_cast<__m512>(y), std::bit_cast<__m512>(t)));
#else
  const VecI exponent = (std::bit_cast<VecI>(floor + magic) - std::bit_cast<VecI>(magic)) << 23;
  const Vec scaled = std::bit_cast<Vec>(std::bit_cast<VecI>(y) + exponent);
  return t == t ? scaled : t;
#endif
}

float horizontal_max(Vec v) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(std::bit_cast<__m512>(v));
#else
  float m = v[0];
  for (int i = 1; i < kLanes; ++i) m = std::max(m, v[i]);
  return m;
#endif
}

// Bit i: lane i of v is greater than f.
std::uint32_t greater(Vec v, float f) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(std::bit_cast<__m512>(v), _mm512_set1_ps(f), _CMP_GT_OQ);
#else
  std::uint32_t mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= static_cast<std::uint32_t>(v[i] > f) << i;
  return mask;
#endif
}

}  // namespace
