// Vectors as wide as the target's registers, and how a row is cut into groups of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>

#include "shared/baselines/lanes.h"
#endif

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kGroupVectors = 8;
constexpr std::int64_t kGroup = kGroupVectors * kLanes;     // elements with common maxima
constexpr std::int64_t kBlockGroups = 4096 / kGroup;        // per update of the maximum
constexpr std::int64_t kBatchGroups = (64 << 10) / kGroup;  // per selection

// 2^t for t up to 127: a polynomial for the fraction of t in [0, 1), relative error 1.5e-7. NaN
// stays; what is below 2^-126 gives that or 0.
Vec exp2_vector(Vec t) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  const Vec r =
      std::bit_cast<Vec>(_mm512_reduce_ps(std::bit_cast<__m512>(t), _MM_FROUND_TO_NEG_INF));
#elif defined(__AVX2__) && !defined(__AVX512F__)
  // The second operand is what remains of a NaN.
  const __m256 bounded = _mm256_max_ps(_mm256_set1_ps(-126.0f), std::bit_cast<__m256>(t));
  const __m256 whole = _mm256_floor_ps(bounded);
  const Vec r = std::bit_cast<Vec>(bounded) - std::bit_cast<Vec>(whole);
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
#elif defined(__AVX2__) && !defined(__AVX512F__)
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23);
  return std::bit_cast<Vec>(_mm256_add_epi32(std::bit_cast<__m256i>(y), exponent));
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
#elif defined(__AVX2__)
  const __m256 is = _mm256_cmp_ps(std::bit_cast<__m256>(v), _mm256_set1_ps(f), _CMP_GT_OQ);
  return static_cast<std::uint32_t>(_mm256_movemask_ps(is));
#else
  std::uint32_t mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= static_cast<std::uint32_t>(v[i] > f) << i;
  return mask;
#endif
}

}  // namespace
