// 8-bit, 4-bit and 1-bit integers with s32 accumulators.
#include <algorithm>
#include <limits>

#include "sim/math/tensor_tiles.h"

namespace assay::sim {

Mma32 find_float_mma(TensorType, MmaShape);  // tensor_float.cpp

namespace {

// Multiplicands become floats: every product and sum of one instruction is an integer below 2^24
// (32 * 255^2 of u8), which f32 adds exactly and at twice the speed of 32-bit integers.
struct Bytes {
  static constexpr int width = 16;
  static void tile(TensorType type, const Lanes32& from, float* to, int cols) {
    std::uint8_t bytes[128];
    std::memcpy(bytes, &from, sizeof bytes);
    const int flip = type == TensorType::s8 ? 0x80 : 0;
    for (int g = 0; g < 8; ++g) {
      for (int c = 0; c < width; ++c) {
        to[g * cols + c] = static_cast<float>((bytes[g * width + c] ^ flip) - flip);
      }
    }
  }
};

struct Nibbles {
  static constexpr int width = 32;
  static void tile(TensorType type, const Lanes32& from, float* to, int cols) {
    const int flip = type == TensorType::s4 ? 8 : 0;
    for (int lane = 0; lane < 32; ++lane) {
      float* eight = to + lane / 4 * cols + lane % 4 * 8;
      for (int e = 0; e < 8; ++e) {
        const int nibble = static_cast<int>(from.v[lane] >> (4 * e) & 15u);
        eight[e] = static_cast<float>((nibble ^ flip) - flip);
      }
    }
  }
};

std::uint32_t add_clamped(std::int32_t c, std::int32_t sum) {
  const std::int64_t exact = std::int64_t{c} + sum;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      exact, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}

// D = C + sum.
template <int m, int n>
void accumulate(const MmaRegisters<Lanes32>& x, const std::int32_t (&sum)[m][n], bool saturate) {
  std::int32_t c[m][n];
  unpack_pairs(x.c, c, [](std::uint32_t v) { return static_cast<std::int32_t>(v); });
  std::uint32_t d[m][n];
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      d[i][j] = saturate
                    ? add_clamped(c[i][j], sum[i][j])
                    : static_cast<std::uint32_t>(c[i][j]) + static_cast<std::uint32_t>(sum[i][j]);
    }
  }
  pack_pairs(d, x.d, [](std::uint32_t v) { return v; });
}

template <class Type, int m, int n, int k>
void mma(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  float a[m][k], bt[n][k], b[k][n], d[m][n] = {};
  unpack<m, k, m == 8 ? 8 : 16, Type::width>(x.a, a, [&](const Lanes32& from, float* to, int cols) {
    Type::tile(mode.a, from, to, cols);
  });
  unpack<n, k, 8, Type::width>(x.b, bt, [&](const Lanes32& from, float* to, int cols) {
    Type::tile(mode.b, from, to, cols);
  });
  transpose(bt, b);
  multiply<true>(a, b, d);
  std::int32_t sum[m][n];
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) sum[i][j] = static_cast<std::int32_t>(d[i][j]);
  }
  accumulate(x, sum, mode.saturate);
}

// Rows of bits as words of 64.
template <int m, int n, int k>
void mma_b1(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  const auto tile = [](const Lanes32& from, std::uint64_t* to, int words) {
    for (int g = 0; g < 8; ++g) std::memcpy(to + g * words, &from.v[4 * g], 16);
  };
  // A tile is 128 bits wide: two words.
  std::uint64_t a[m][k / 64], b[n][k / 64];
  unpack<m, k / 64, m == 8 ? 8 : 16, 2>(x.a, a, tile);
  unpack<n, k / 64, 8, 2>(x.b, b, tile);
  std::int32_t sum[m][n];
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      int count = 0;
      for (int w = 0; w < k / 64; ++w) {
        count += std::popcount(mode.conjunction ? a[i][w] & b[j][w] : a[i][w] ^ b[j][w]);
      }
      sum[i][j] = count;
    }
  }
  accumulate(x, sum, false);
}

}  // namespace

Mma32 find_mma32(TensorType type, MmaShape s) {
  switch (type) {
    case TensorType::s8:
    case TensorType::u8:
      if (s == MmaShape{8, 8, 16}) return mma<Bytes, 8, 8, 16>;
      if (s == MmaShape{16, 8, 16}) return mma<Bytes, 16, 8, 16>;
      if (s == MmaShape{16, 8, 32}) return mma<Bytes, 16, 8, 32>;
      if (s == MmaShape{16, 16, 16}) return mma<Bytes, 16, 16, 16>;
      if (s == MmaShape{32, 8, 16}) return mma<Bytes, 32, 8, 16>;
      return nullptr;
    case TensorType::s4:
    case TensorType::u4:
      if (s == MmaShape{8, 8, 32}) return mma<Nibbles, 8, 8, 32>;
      if (s == MmaShape{16, 8, 32}) return mma<Nibbles, 16, 8, 32>;
      if (s == MmaShape{16, 8, 64}) return mma<Nibbles, 16, 8, 64>;
      return nullptr;
    case TensorType::b1:
      if (s == MmaShape{8, 8, 128}) return mma_b1<8, 8, 128>;
      if (s == MmaShape{16, 8, 128}) return mma_b1<16, 8, 128>;
      if (s == MmaShape{16, 8, 256}) return mma_b1<16, 8, 256>;
      return nullptr;
    default: return find_float_mma(type, s);
  }
}

}  // namespace assay::sim
