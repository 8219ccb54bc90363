// Weights in blocks of 128, plain and dense.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "shared/baselines/half.h"
#include "vectors.h"

namespace {

constexpr Index kBlock = 128, kBytes = 34;

float half_to_float(unsigned bits) { return widen(static_cast<std::uint16_t>(bits), ASSAY_F16); }

// v >= 0, to nearest, ties to even; 65504 at most.
unsigned half_from(double v) {
  v = std::min(v, 65504.0);
  if (!(v > 0)) return 0;
  // Below the least normal number a step is 2^-24; what rounds up to 1024 steps is that number.
  if (v < 0x1p-14) return static_cast<unsigned>(std::nearbyint(v * 0x1p24));
  // 42 of the 52 fraction bits go; exponents count from 15 instead of 1023.
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const std::uint64_t kept = (bits + 0x1ffffffffff + (bits >> 42 & 1)) >> 42;
  return static_cast<unsigned>(kept - (std::uint64_t{1023 - 15} << 10));
}

unsigned block_scale(const float* w) {
  double part[8] = {};
  for (Index j = 0; j < kBlock; j += 8) {
    for (Index i = 0; i < 8; ++i) part[i] += std::abs(static_cast<double>(w[j + i]));
  }
  double total = 0;
  for (const double p : part) total += p;
  return half_from(total / kBlock);
}

void quantize_block(const float* w, std::uint8_t* block) {
  const unsigned bits = block_scale(w);
  const float half = bits != 0 ? half_to_float(bits) / 2 : std::numeric_limits<float>::infinity();
  std::uint8_t codes[kBlock];
  for (Index j = 0; j < kBlock; ++j) {
    codes[j] = static_cast<std::uint8_t>(1 + (w[j] > half ? 1 : 0) - (w[j] < -half ? 1 : 0));
  }
  block[0] = static_cast<std::uint8_t>(bits);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  for (Index j = 0; j < kBlock; j += 4) {
    block[2 + j / 4] = static_cast<std::uint8_t>(codes[j] | codes[j + 1] << 2 | codes[j + 2] << 4 |
                                                 codes[j + 3] << 6);
  }
}

void dequantize_block(const std::uint8_t* block, float* w) {
  const float s = half_to_float(static_cast<unsigned>(block[0] | block[1] << 8));
  for (Index j = 0; j < kBlock; ++j) {
    w[j] = static_cast<float>((block[2 + j / 4] >> (j % 4 * 2) & 3) - 1) * s;
  }
}

// What a block of these weights would say, without the detour over bytes.
void round_block(const float* w, float* out) {
  const unsigned bits = block_scale(w);
  const float s = half_to_float(bits),
              half = bits != 0 ? s / 2 : std::numeric_limits<float>::infinity();
  for (Index j = 0; j < kBlock; ++j) out[j] = w[j] > half ? s : w[j] < -half ? -s : 0.0f;
}

// A code a byte, which vectors can work on.
void expand_codes(const std::uint8_t* block, std::uint8_t* codes) {
  for (Index j = 0; j < kBlock; ++j) codes[j] = block[2 + j / 4] >> (j % 4 * 2) & 3;
}

// Dense blocks are made for vectors: byte m of a group of `bytes` takes the m-th code of each run
// of so many.
template <Index bytes, Index digits>
void pack_group(const std::uint8_t* codes, std::uint8_t* dense) {
  std::uint16_t number[bytes] = {};
  for (Index n = 0; n < 5; ++n) {
    for (Index m = 0; m < bytes; ++m) {
      number[m] =
          static_cast<std::uint16_t>(number[m] * 3 + (n < digits ? codes[n * bytes + m] : 0));
    }
  }
  for (Index m = 0; m < bytes; ++m) {
    dense[m] = static_cast<std::uint8_t>((number[m] * 256u + 242) / 243);
  }
}

template <Index bytes, Index digits>
void unpack_group(const std::uint8_t* dense, std::uint8_t* codes) {
  std::uint16_t rest[bytes];
  std::copy_n(dense, bytes, rest);
  for (Index n = 0; n < digits; ++n) {
    for (Index m = 0; m < bytes; ++m) {
      const auto tripled = static_cast<std::uint16_t>(rest[m] * 3);
      codes[n * bytes + m] = static_cast<std::uint8_t>(tripled >> 8);
      rest[m] = tripled & 255;
    }
  }
}

constexpr Index kDenseBytes = 28;

void pack_dense_block(const std::uint8_t* block, std::uint8_t* dense) {
  std::uint8_t codes[kBlock];
  expand_codes(block, codes);
  pack_group<16, 5>(codes, dense);
  pack_group<8, 5>(codes + 80, dense + 16);
  pack_group<2, 4>(codes + 120, dense + 24);
  std::memcpy(dense + 26, block, 2);
}

void unpack_dense_block(const std::uint8_t* dense, std::uint8_t* block) {
  std::uint8_t codes[kBlock];
  unpack_group<16, 5>(dense, codes);
  unpack_group<8, 5>(dense + 16, codes + 80);
  unpack_group<2, 4>(dense + 24, codes + 120);
  std::memcpy(block, dense + 26, 2);
  for (Index i = 0; i < 32; ++i) {
    const std::uint8_t* c = codes + 4 * i;
    block[2 + i] = static_cast<std::uint8_t>(c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6);
  }
}

}  // namespace
