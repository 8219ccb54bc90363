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

// IEEE binary16.
inline float f16_to_float(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // As an integer multiple of 2^-24 for subnormals; else by shifting the exponent's bias.
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

// Rounds to nearest even; above 65504 + 16 to infinity; NaN stays NaN.
inline std::uint16_t float_to_f16(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude <
      0x38800000u) {  // below 2^-14: the sum with 2^-1 + ... rounds to multiples of 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
  }
  const std::uint32_t even = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + even) >> 13));
}

// Unit roundoff of binary32, the eps32 of every tolerance: 2^-24.
inline constexpr double kEps32 = 5.9604644775390625e-08;
// Unit roundoff of bfloat16 as the tolerances use it: 2^-9.
inline constexpr double kEpsBf16 = 0.001953125;
// Unit roundoff of binary16: 2^-11.
inline constexpr double kEpsF16 = 0.00048828125;

}  // namespace assay
