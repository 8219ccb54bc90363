// 8-bit, 4-bit and 1-bit integers with s32 accumulators.
#include "sim/math/tensor_tiles.h"

namespace assay::sim {

Mma32 find_float_mma(TensorType, MmaShape);  // tensor_float.cpp

namespace {

// D = C + sum, modulo 2^32 or clamped.
template <int m, int n>
void accumulate(const MmaRegisters<Lanes32>& x, const std::int32_t (&sum)[m * n], bool saturate) {
  using Word = std::uint32_t;
  Word c[m * n];
  unpack_pairs<m, n>(x.c, c, [](Eight<Word> v) { return v; });
  for (int e = 0; e < m * n; ++e) {
    const Word before = c[e], addend = static_cast<Word>(sum[e]), after = before + addend;
    // The sum overflows if its sign differs from the signs of both C and the addend.
    const bool overflow = (((before ^ after) & (addend ^ after)) >> 31) != 0;
    const Word limit = 0x7fffffffu + (before >> 31);
    c[e] = saturate && overflow ? limit : after;
  }
  pack_pairs<m, n>(c, x.d, [](Eight<Word> v) { return v; });
}

// Multiplicands become floats: every product and sum of one instruction is an integer below 2^24
// (32 * 255^2 for u8), which f32 adds exactly, and faster than 32-bit integers.
template <int bits, int m, int n, int k>
void mma(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  // Complements the sign bit and subtracts its weight.
  constexpr int sign = 1 << (bits - 1);
  const auto flip = [](TensorType t) {
    return t == TensorType::s8 || t == TensorType::s4 ? sign : 0;
  };
  const int flip_a = flip(mode.a), flip_b = flip(mode.b);

  std::uint8_t elements_a[m * k];
  if constexpr (bits == 8) {
    concatenate<std::uint8_t, m * k / 128>(x.a, elements_a);
  } else {
    std::uint8_t pairs[m * k / 2];
    concatenate<std::uint8_t, m * k / 256>(x.a, pairs);
    for (int e = 0; e < m * k / 2; ++e) {
      elements_a[2 * e] = pairs[e] & 15;
      elements_a[2 * e + 1] = pairs[e] >> 4;
    }
  }
  float a[m * k];
  for (int e = 0; e < m * k; ++e) a[e] = static_cast<float>((elements_a[e] ^ flip_a) - flip_a);

  std::uint32_t elements_b[n * k];
  unpack_b<n, k, bits>(x.b, elements_b);
  float b[n * k];
  for (int e = 0; e < n * k; ++e) {
    b[e] = static_cast<float>((static_cast<int>(elements_b[e]) ^ flip_b) - flip_b);
  }

  float d[m * n] = {};
  multiply<ExactProducts, m, n, k, tile_width(bits)>(a, b, d);
  std::int32_t sum[m * n];
  for (int e = 0; e < m * n; ++e) sum[e] = static_cast<std::int32_t>(d[e]);
  accumulate<m, n>(x, sum, mode.saturate);
}

// Rows of bits as 64-bit words.
template <int m, int n, int k>
void mma_b1(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  std::uint64_t a[m][k / 64], b[n][k / 64];
  const auto read = [](const Lanes32* const* registers, int block_rows, auto& rows) {
    for (int t = 0; t < static_cast<int>(sizeof rows / sizeof(Lanes32)); ++t) {
      const TileOrigin at = tile_origin(t, block_rows, k, 128);
      for (int g = 0; g < 8; ++g)
        std::memcpy(&rows[at.row + g][at.col / 64], &registers[t]->v[4 * g], 16);
    }
  };
  read(x.a, m == 8 ? 8 : 16, a);
  read(x.b, 8, b);
  std::int32_t sum[m * n];
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      int count = 0;
      for (int w = 0; w < k / 64; ++w) {
        count += std::popcount(mode.conjunction ? a[i][w] & b[j][w] : a[i][w] ^ b[j][w]);
      }
      sum[i * n + j] = count;
    }
  }
  accumulate<m, n>(x, sum, false);
}

}  // namespace

Mma32 find_mma32(TensorType type, MmaShape s) {
  switch (type) {
    case TensorType::s8:
    case TensorType::u8:
      if (s == MmaShape{8, 8, 16}) return mma<8, 8, 8, 16>;
      if (s == MmaShape{16, 8, 16}) return mma<8, 16, 8, 16>;
      if (s == MmaShape{16, 8, 32}) return mma<8, 16, 8, 32>;
      if (s == MmaShape{16, 16, 16}) return mma<8, 16, 16, 16>;
      if (s == MmaShape{32, 8, 16}) return mma<8, 32, 8, 16>;
      return nullptr;
    case TensorType::s4:
    case TensorType::u4:
      if (s == MmaShape{8, 8, 32}) return mma<4, 8, 8, 32>;
      if (s == MmaShape{16, 8, 32}) return mma<4, 16, 8, 32>;
      if (s == MmaShape{16, 8, 64}) return mma<4, 16, 8, 64>;
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
