// Element types of buffers, and the rounding between fp32 and the two half-width formats.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace assay {

enum class Dtype : std::uint8_t { f32, bf16, f16, f64, i32, i64, u8, u16, u64 };

constexpr std::size_t size_of(Dtype t) {
  switch (t) {
    case Dtype::u8: return 1;
    case Dtype::bf16:
    case Dtype::f16:
    case Dtype::u16: return 2;
    case Dtype::f32:
    case Dtype::i32: return 4;
    default: return 8;
  }
}

// bfloat16 is the upper half of an IEEE binary32.
inline float bf16_to_float(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

// Rounds to nearest even; NaN stays NaN.
inline std::uint16_t float_to_bf16(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// Unit roundoff of binary32, the eps32 of every tolerance: 2^-24.
inline constexpr double kEps32 = 5.9604644775390625e-08;
// Unit roundoff of bfloat16 as the tolerances use it: 2^-9.
inline constexpr double kEpsBf16 = 0.001953125;

}  // namespace assay
