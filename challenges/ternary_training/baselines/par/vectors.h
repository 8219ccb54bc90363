// Functions of vectors, and of arrays by vectors.
#pragma once

#include <cstdint>
#include <cstring>

#include "shared/baselines/lanes.h"

namespace {

using Index = std::int64_t;

float sum(Vec v) {
  float s = 0;
  for (Index i = 0; i < kLanes; ++i) s += v[i];
  return s;
}

// e^x to about 2 ulp for x <= 88; below -87 it is as good as 0.
Vec exp(Vec x) {
  const Vec low = splat(-87.0f), high = splat(88.0f);
  x = x < low ? low : x;
  x = x > high ? high : x;
  const Vec magic = splat(12582912.0f);  // 1.5 2^23: the sum's low bits are the integer
  const Vec shifted = x * 1.44269504f + magic, n = shifted - magic;
  const Vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  VecI bits, power;
  std::memcpy(&bits, &p, sizeof bits);
  std::memcpy(&power, &shifted, sizeof power);
  bits += power << 23;  // magic's own bits are shifted out
  std::memcpy(&p, &bits, sizeof p);
  return p;
}

// n is a multiple of kLanes.
void copy_vectors(Index n, const float* from, float* to) {
  for (Index i = 0; i < n; i += kLanes) store(to + i, load(from + i));
}

// 1 / sqrt(x) to about 2 ulp, for normal x > 0: a guess from the bits, and three of Newton's steps.
Vec reciprocal_root(Vec x) {
  VecI bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = 0x5f3759df - (bits >> 1);
  Vec y;
  std::memcpy(&y, &bits, sizeof y);
  for (int i = 0; i < 3; ++i) y *= 1.5f - 0.5f * x * y * y;
  return y;
}

// f(vector at i) for i in [0, n), the rest of the last vector filled up with 0 and not stored.
template <class F>
void map(Index n, const float* x, float* y, F f) {
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i)));
  if (i == n) return;
  Vec v{};
  std::memcpy(&v, x + i, static_cast<std::size_t>(n - i) * 4);
  v = f(v);
  std::memcpy(y + i, &v, static_cast<std::size_t>(n - i) * 4);
}

float dot(const float* a, const float* b, Index n) {
  Vec s{};
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) s += load(a + i) * load(b + i);
  float rest = sum(s);
  for (; i < n; ++i) rest += a[i] * b[i];
  return rest;
}

}  // namespace
