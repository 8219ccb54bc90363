// Vectors of as many floats as a register holds: loads, exponentials and sums over lanes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "shared/baselines/lanes.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

VecI splat_int(std::int32_t i) { return i - VecI{}; }

// exp for x <= 0: 2^n times a polynomial on [-ln2/2, ln2/2] (coefficients of Cephes' expf), about 2
// ulp; 0 below -87.
Vec exp_nonpositive(Vec x) {
  const Vec clamped = x > -87.0f ? x : splat(-87.0f);
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23 rounds to an integer
  const Vec shifted = clamped * 1.44269504f + magic;
  const Vec n = shifted - magic;
  Vec r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec y = splat(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  VecI exponent;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  exponent = (exponent << 23) + 0x3f800000;
  Vec power;
  std::memcpy(&power, &exponent, sizeof power);
  const Vec result = y * power;
  return x > -87.0f ? result : Vec{};
}

// The lanes of a vector, each with the one `distance` away from it.
template <int distance>
Vec exchanged(Vec v) {
  VecI from{};
  for (int i = 0; i < kLanes; ++i) from[i] = i ^ distance;
  return __builtin_shuffle(v, from);
}

float largest_lane(Vec v) {
#ifdef __AVX512F__
  v = larger(v, exchanged<8>(v));
#endif
  v = larger(v, exchanged<4>(v));
  v = larger(v, exchanged<2>(v));
  return larger(v, exchanged<1>(v))[0];
}

float sum_of_lanes(Vec v) {
#ifdef __AVX512F__
  v += exchanged<8>(v);
#endif
  v += exchanged<4>(v);
  v += exchanged<2>(v);
  return (v + exchanged<1>(v))[0];
}

// Halves the blocks of `width` lanes of two vectors: each block of the result is half as wide, and
// they stand alternately for a and b.
template <int width>
Vec fold(Vec a, Vec b) {
  VecI first{}, second{};
  for (int i = 0; i < kLanes; ++i) {
    const int half = width / 2, block = i / half, from = block / 2 * width + i % half;
    first[i] = from + (block % 2) * kLanes;
    second[i] = first[i] + half;
  }
  return __builtin_shuffle(a, b, first) + __builtin_shuffle(a, b, second);
}

// Lane i of the result is the sum of the lanes of a[i].
Vec transposed_sums(const Vec* a) {
  Vec half[kLanes / 2], quarter[kLanes / 4], eighth[kLanes / 8];
  for (int i = 0; i < kLanes / 2; ++i) half[i] = fold<kLanes>(a[i], a[i + kLanes / 2]);
  for (int i = 0; i < kLanes / 4; ++i) quarter[i] = fold<kLanes / 2>(half[i], half[i + kLanes / 4]);
  for (int i = 0; i < kLanes / 8; ++i)
    eighth[i] = fold<kLanes / 4>(quarter[i], quarter[i + kLanes / 8]);
#ifdef __AVX512F__
  return fold<2>(eighth[0], eighth[1]);
#else
  return eighth[0];
#endif
}

std::int64_t padded(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

}  // namespace
