// Elements of arrays of fp32, half precision and bfloat16 one at a time, rounded to nearest even:
// written for what they mean and not for speed, and otherwise than half.h, so that naive and par do
// not share their mistakes.
#pragma once

#include <cmath>
#include <cstdint>

#include "abi.h"
#include "float_bits.h"

namespace {

float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3ffu;
  if (exponent == 31) return from_bits(sign | 0x7f800000u | fraction << 13);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(fraction + 1024),
                                                     static_cast<int>(exponent) - 25);
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t float_to_half(float f) {
  const auto sign = static_cast<std::uint16_t>(to_bits(f) >> 16 & 0x8000u);
  const float a = std::fabs(f);
  if (std::isnan(f)) return sign | 0x7e00u;
  if (a >= 65520.0f) return sign | 0x7c00u;
  if (a < 0x1p-14f)
    return static_cast<std::uint16_t>(sign |
                                      static_cast<std::uint16_t>(std::nearbyint(a * 0x1p24f)));
  const std::uint32_t u = to_bits(a);
  return static_cast<std::uint16_t>(sign | (((u + 0xfffu + (u >> 13 & 1u)) >> 13) - (112u << 10)));
}

float load(const void* data, std::int64_t at, std::int32_t dtype) {
  if (dtype == ASSAY_F32) return static_cast<const float*>(data)[at];
  const std::uint16_t h = static_cast<const std::uint16_t*>(data)[at];
  return dtype == ASSAY_BF16 ? from_bits(static_cast<std::uint32_t>(h) << 16) : half_to_float(h);
}

void store(void* data, std::int64_t at, std::int32_t dtype, float f) {
  if (dtype == ASSAY_F32) {
    static_cast<float*>(data)[at] = f;
  } else if (dtype == ASSAY_F16) {
    static_cast<std::uint16_t*>(data)[at] = float_to_half(f);
  } else {
    const std::uint32_t u = to_bits(f);
    static_cast<std::uint16_t*>(data)[at] = static_cast<std::uint16_t>(
        std::isnan(f) ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
}

}  // namespace
