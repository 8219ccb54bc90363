// Weights in blocks of 128, plain and dense, and the bits of halves and bfloat16.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

using Index = std::int64_t;
constexpr Index kBlock = 128, kBytes = 34;

float half_to_float(unsigned bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  return exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                       : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// v >= 0, to nearest, ties to even; 65504 at most.
unsigned half_from(double v) {
  v = std::min(v, 65504.0);
  if (!(v > 0)) return 0;
  const int exponent = std::max(std::ilogb(v), -14);
  return static_cast<unsigned>(std::nearbyint(std::ldexp(v, 10 - exponent))) +
         (static_cast<unsigned>(exponent + 14) << 10);
}

float block_scale(const std::uint8_t* block) {
  return half_to_float(static_cast<unsigned>(block[0] | block[1] << 8));
}

void quantize_block(const float* w, std::uint8_t* block) {
  double sum = 0;
  for (Index j = 0; j < kBlock; ++j) sum += std::abs(static_cast<double>(w[j]));
  const unsigned bits = half_from(sum / kBlock);
  std::memset(block, 0, kBytes);
  block[0] = static_cast<std::uint8_t>(bits);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  const float half = block_scale(block) / 2;
  for (Index j = 0; j < kBlock; ++j) {
    const int code = half > 0 && std::abs(w[j]) > half ? (w[j] > 0 ? 2 : 0) : 1;
    block[2 + j / 4] = static_cast<std::uint8_t>(block[2 + j / 4] | code << (j % 4 * 2));
  }
}

void dequantize_block(const std::uint8_t* block, float* w) {
  const float s = block_scale(block);
  for (Index j = 0; j < kBlock; ++j) {
    w[j] = static_cast<float>((block[2 + j / 4] >> (j % 4 * 2) & 3) - 1) * s;
  }
}

// The same codes in 28 bytes: a byte holds those of n weights, `stride` apart.
constexpr Index kDenseBytes = 28;

struct DenseByte {
  Index first, stride, n;
};

DenseByte dense_byte(Index i) {
  if (i < 16) return {i, 16, 5};
  if (i < 24) return {80 + i - 16, 8, 5};
  return {120 + i - 24, 2, 4};
}

void pack_dense_block(const std::uint8_t* block, std::uint8_t* dense) {
  for (Index i = 0; i < 26; ++i) {
    const auto [first, stride, n] = dense_byte(i);
    int number = 0;
    for (Index k = 0; k < 5; ++k) {
      const Index j = first + k * stride;
      number = number * 3 + (k < n ? block[2 + j / 4] >> (j % 4 * 2) & 3 : 0);
    }
    dense[i] = static_cast<std::uint8_t>((number * 256 + 242) / 243);
  }
  std::memcpy(dense + 26, block, 2);
}

void unpack_dense_block(const std::uint8_t* dense, std::uint8_t* block) {
  std::memset(block, 0, kBytes);
  std::memcpy(block, dense + 26, 2);
  for (Index i = 0; i < 26; ++i) {
    const auto [first, stride, n] = dense_byte(i);
    // A fraction of 256, whose next digit is what carries over when it is tripled.
    unsigned rest = dense[i];
    for (Index k = 0; k < n; ++k) {
      const Index j = first + k * stride;
      block[2 + j / 4] =
          static_cast<std::uint8_t>(block[2 + j / 4] | (rest * 3 >> 8) << (j % 4 * 2));
      rest = rest * 3 & 255;
    }
  }
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// To nearest, ties to even; finite numbers only.
std::uint16_t to_bf16(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace
