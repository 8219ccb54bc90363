// Vectors of as many floats as a register holds, and bfloat16.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "shared/baselines/lanes.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// exp for x <= 0: 2^n times a polynomial on [-ln2/2, ln2/2] (coefficients of Cephes' expf), about 2
// ulp; 0 below -87 and for NaN.
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
  const VecI exponent = (std::bit_cast<VecI>(shifted) - std::bit_cast<VecI>(magic)) << 23;
  const Vec scaled = std::bit_cast<Vec>(std::bit_cast<VecI>(y) + exponent);
  return x > -87.0f ? scaled : Vec{};
}

float widen(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

std::uint16_t narrow(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

}  // namespace
