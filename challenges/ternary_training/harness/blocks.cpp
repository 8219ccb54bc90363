// The block format, plain and dense, and the sizes that follow from a configuration.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "assay/size.h"
#include "trusted.h"

namespace assay::ternary_training {

std::vector<MatrixSize> matrices_of(const tt_config& c) {
  if (blob_size(c) == 0) return {};
  const std::int64_t d = c.d, wide = std::int64_t{c.Hq} * c.hd, narrow = std::int64_t{c.Hkv} * c.hd,
                     ff = c.ff;
  std::vector<MatrixSize> all(to_size(2 - c.tied), {c.V, d});
  for (int l = 0; l < c.L; ++l) {
    all.insert(all.end(),
               {{wide, d}, {narrow, d}, {narrow, d}, {d, wide}, {ff, d}, {ff, d}, {d, ff}});
  }
  return all;
}

std::int64_t weight_count(const tt_config& c) {
  std::int64_t n = c.L * (2 * std::int64_t{c.d} + 2 * std::int64_t{c.hd}) + c.d;
  for (const MatrixSize& m : matrices_of(c)) n += m.rows * m.cols;
  return n;
}

std::int64_t block_bytes(std::int64_t rows, std::int64_t cols) {
  return rows * ((cols + kBlockWeights - 1) / kBlockWeights) * kBlockBytes;
}

std::int64_t blob_size(const tt_config& c) {
  const bool positive =
      c.V > 0 && c.d > 0 && c.L > 0 && c.Hq > 0 && c.Hkv > 0 && c.hd > 0 && c.ff > 0;
  if (!positive || c.T < 2 || c.V > 65536 || c.hd % 2 != 0 || c.Hq % c.Hkv != 0) return 0;
  const std::int64_t d = c.d, wide = std::int64_t{c.Hq} * c.hd, narrow = std::int64_t{c.Hkv} * c.hd,
                     ff = c.ff;
  if (d % kBlockWeights != 0 || wide % kBlockWeights != 0 || ff % kBlockWeights != 0) return 0;
  if (c.tied != 0 && c.tied != 1) return 0;
  const std::int64_t layer = block_bytes(wide, d) + 2 * block_bytes(narrow, d) +
                             block_bytes(d, wide) + 2 * block_bytes(ff, d) + block_bytes(d, ff);
  const std::int64_t norms = c.L * (2 * d + 2 * std::int64_t{c.hd}) + d;
  return (2 - c.tied) * block_bytes(c.V, d) + c.L * layer + 4 * norms;
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// For values that a scale can have: not negative, at most 65504.
std::uint16_t half_bits(double v) {
  if (!(v > 0)) return 0;
  v = std::min(v, 65504.0);
  const int exponent = std::max(std::ilogb(v), -14);  // below 2^-14 the spacing stays 2^-24
  // nearbyint rounds ties to even; a carry into the next power of two is also right in this
  // encoding.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(v, 10 - exponent)));
  return static_cast<std::uint16_t>(units + static_cast<std::uint32_t>((exponent + 14) << 10));
}

void quantize_block(const float* w, std::uint8_t* block) {
  double sum = 0;
  for (int j = 0; j < kBlockWeights; ++j) sum += std::abs(static_cast<double>(w[j]));
  const std::uint16_t bits = half_bits(sum / kBlockWeights);
  const double s = half_value(bits);
  std::fill_n(block, kBlockBytes, std::uint8_t{0});
  block[0] = static_cast<std::uint8_t>(bits);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  for (int j = 0; j < kBlockWeights; ++j) {
    const bool large = s > 0 && std::abs(static_cast<double>(w[j])) > s / 2;
    const int code = !large ? 1 : w[j] > 0 ? 2 : 0;
    block[2 + j / 4] = static_cast<std::uint8_t>(block[2 + j / 4] | code << (j % 4 * 2));
  }
}

bool decode_block(const std::uint8_t* block, double* w) {
  const double s = half_value(static_cast<std::uint16_t>(block[0] | block[1] << 8));
  bool legal = std::isfinite(s) && s >= 0 && block[1] < 0x80;
  for (int j = 0; j < kBlockWeights; ++j) {
    const int code = block[2 + j / 4] >> (j % 4 * 2) & 3;
    legal = legal && code != 3;
    w[j] = (code - 1) * s;
  }
  return legal;
}

void dense_block(const std::uint8_t* block, std::uint8_t* dense) {
  const auto code = [&](int j) { return block[2 + j / 4] >> (j % 4 * 2) & 3; };
  // Packs one byte: its index, the first weight, the stride between weights, the number of weights.
  const auto put = [&](int at, int first, int stride, int n) {
    int number = 0;
    for (int i = 0; i < 5; ++i) number = 3 * number + (i < n ? code(first + i * stride) : 0);
    dense[at] = static_cast<std::uint8_t>((256 * number + 242) / 243);
  };
  for (int m = 0; m < 16; ++m) put(m, m, 16, 5);
  for (int m = 0; m < 8; ++m) put(16 + m, 80 + m, 8, 5);
  for (int m = 0; m < 2; ++m) put(24 + m, 120 + m, 2, 4);
  dense[26] = block[0];
  dense[27] = block[1];
}

// The inverse, by search: each byte encodes at most one number.
void undense_block(const std::uint8_t* dense, std::uint8_t* block) {
  std::fill_n(block, kBlockBytes, std::uint8_t{0});
  block[0] = dense[26];
  block[1] = dense[27];
  const auto take = [&](int at, int first, int stride, int n) {
    int number = 0;
    while (number < 242 && (256 * number + 242) / 243 != dense[at]) ++number;
    for (int i = 4; i >= 0; --i, number /= 3) {
      const int j = first + i * stride;
      if (i < n)
        block[2 + j / 4] = static_cast<std::uint8_t>(block[2 + j / 4] | number % 3 << (j % 4 * 2));
    }
  };
  for (int m = 0; m < 16; ++m) take(m, m, 16, 5);
  for (int m = 0; m < 8; ++m) take(16 + m, 80 + m, 8, 5);
  for (int m = 0; m < 2; ++m) take(24 + m, 120 + m, 2, 4);
}

}  // namespace assay::ternary_training
