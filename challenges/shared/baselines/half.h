// bfloat16 and half precision, rounded to nearest even.
#pragma once

#include <cstdint>

#include "abi.h"
#include "float_bits.h"

namespace {

inline float widen(std::uint16_t h, std::int32_t dtype) {
  if (dtype == ASSAY_BF16) return from_bits(static_cast<std::uint32_t>(h) << 16);
  const std::uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return from_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return from_bits(sign | ((rest << 13) + 0x38000000u));
  return from_bits(sign | to_bits(static_cast<float>(rest) * 0x1p-24f));
}

inline std::uint16_t narrow(float f, std::int32_t dtype) {
  const std::uint32_t u = to_bits(f), rest = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
  if (dtype == ASSAY_BF16) {
    if (rest > 0x7f800000u) return static_cast<std::uint16_t>(u >> 16 | 0x40u);
    return static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  if (rest > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {
    return static_cast<std::uint16_t>(sign | (to_bits(from_bits(rest) + 0.5f) - 0x3f000000u));
  }
  return static_cast<std::uint16_t>(sign |
                                    ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13));
}

}  // namespace
