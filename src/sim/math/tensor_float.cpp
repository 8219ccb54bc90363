// f16, bf16, tf32 and fp8 multiplicands with f32 or f16 accumulators, and f64.
#include "sim/math/formats.h"
#include "sim/math/tensor_tiles.h"

namespace assay::sim {
namespace {

float float_of_half(std::uint32_t x) { return widen(Half{x}); }

// As f16 with one exponent bit less, no infinity and one NaN: the bias is 7, not 15.
float float_of_e4m3(std::uint32_t x) {
  const float value = widen(Half{(x & 0x80u) << 8 | (x & 0x7fu) << 7}) * 256;
  return (x & 0x7fu) == 0x7fu ? std::bit_cast<float>(kNan32) : value;
}

float float_of_e5m2(std::uint32_t x) { return widen(Half{x << 8}); }

std::uint32_t bits_of_float(double x) {
  return std::bit_cast<std::uint32_t>(canonical(static_cast<float>(x)));
}

template <class Element, int width, class Decode>
inline void decode_tile(const Lanes32& from, double* to, int cols, Decode decode) {
  Element elements[8 * width];
  static_assert(sizeof elements == sizeof from);
  std::memcpy(elements, &from, sizeof elements);
  for (int g = 0; g < 8; ++g) {
    for (int c = 0; c < width; ++c) to[g * cols + c] = decode(elements[g * width + c]);
  }
}

// How to read a tile, for each kind of multiplicand. `width`: its columns.
struct HalfTile {
  static constexpr int width = 8;
  static void tile(TensorType, const Lanes32& from, double* to, int cols) {
    decode_tile<std::uint16_t, width>(from, to, cols, float_of_half);
  }
};

struct BfloatTile {
  static constexpr int width = 8;
  static void tile(TensorType, const Lanes32& from, double* to, int cols) {
    decode_tile<std::uint16_t, width>(from, to, cols,
                                      [](std::uint32_t x) { return widen(Bfloat{x}); });
  }
};

struct Tf32Tile {
  static constexpr int width = 4;
  static void tile(TensorType, const Lanes32& from, double* to, int cols) {
    decode_tile<std::uint32_t, width>(
        from, to, cols, [](std::uint32_t x) { return std::bit_cast<float>(x & ~0x1fffu); });
  }
};

struct Fp8Tile {
  static constexpr int width = 16;
  static void tile(TensorType type, const Lanes32& from, double* to, int cols) {
    if (type == TensorType::e4m3) {
      decode_tile<std::uint8_t, width>(from, to, cols, float_of_e4m3);
    } else {
      decode_tile<std::uint8_t, width>(from, to, cols, float_of_e5m2);
    }
  }
};

template <int m, int n>
void load_c(const MmaRegisters<Lanes32>& x, bool half, double (&c)[m][n]) {
  if (half) {
    unpack<m, n, m, 8>(x.c, c, [](const Lanes32& from, double* to, int cols) {
      decode_tile<std::uint16_t, 8>(from, to, cols, float_of_half);
    });
  } else {
    unpack_pairs(x.c, c, [](std::uint32_t v) -> double { return std::bit_cast<float>(v); });
  }
}

template <int m, int n>
void store_d(const double (&d)[m][n], bool half, const MmaRegisters<Lanes32>& x) {
  if (!half) return pack_pairs(d, x.d, bits_of_float);
  for (int t = 0; t < m * n / 64; ++t) {
    const TileOrigin at = tile_origin(t, m, n, 8);
    std::uint16_t elements[64];
    for (int g = 0; g < 8; ++g) {
      for (int c = 0; c < 8; ++c) {
        elements[8 * g + c] =
            static_cast<std::uint16_t>(to_half<Half>(d[at.row + g][at.col + c]).bits);
      }
    }
    std::memcpy(x.d[t], elements, sizeof elements);
  }
}

template <class Type, int m, int n, int k>
void mma(const MmaRegisters<Lanes32>& x, const MmaMode& mode) {
  double a[m][k], bt[n][k], b[k][n], d[m][n];
  unpack<m, k, 16, Type::width>(x.a, a, [&](const Lanes32& from, double* to, int cols) {
    Type::tile(mode.a, from, to, cols);
  });
  unpack<n, k, 8, Type::width>(x.b, bt, [&](const Lanes32& from, double* to, int cols) {
    Type::tile(mode.b, from, to, cols);
  });
  transpose(bt, b);
  load_c(x, mode.half_c, d);
  multiply<true>(a, b, d);
  store_d(d, mode.half_d, x);
}

template <int m, int n, int k>
void mma_f64(const MmaRegisters<Lanes64>& x) {
  const auto tile = [](const Lanes64& from, double* to, int cols) {
    for (int g = 0; g < 8; ++g) {
      for (int c = 0; c < 4; ++c) to[g * cols + c] = std::bit_cast<double>(from.v[4 * g + c]);
    }
  };
  double a[m][k], bt[n][k], b[k][n], d[m][n];
  unpack<m, k, m == 8 ? 8 : 16, 4>(x.a, a, tile);
  unpack<n, k, 8, 4>(x.b, bt, tile);
  transpose(bt, b);
  unpack_pairs(x.c, d, [](std::uint64_t v) { return std::bit_cast<double>(v); });
  multiply<false>(a, b, d);
  pack_pairs(d, x.d, [](double v) { return std::bit_cast<std::uint64_t>(canonical(v)); });
}

template <class Type>
Mma32 find_16_bit(MmaShape s) {
  if (s == MmaShape{16, 8, 8}) return mma<Type, 16, 8, 8>;
  if (s == MmaShape{16, 8, 16}) return mma<Type, 16, 8, 16>;
  if (s == MmaShape{16, 16, 16}) return mma<Type, 16, 16, 16>;
  if (s == MmaShape{32, 8, 16}) return mma<Type, 32, 8, 16>;
  return nullptr;
}

}  // namespace

Mma32 find_float_mma(TensorType type, MmaShape s) {
  switch (type) {
    case TensorType::f16: return find_16_bit<HalfTile>(s);
    case TensorType::bf16: return find_16_bit<BfloatTile>(s);
    case TensorType::tf32:
      if (s == MmaShape{16, 8, 4}) return mma<Tf32Tile, 16, 8, 4>;
      if (s == MmaShape{16, 8, 8}) return mma<Tf32Tile, 16, 8, 8>;
      if (s == MmaShape{16, 16, 8}) return mma<Tf32Tile, 16, 16, 8>;
      return nullptr;
    case TensorType::e4m3:
    case TensorType::e5m2:
      if (s == MmaShape{16, 8, 16}) return mma<Fp8Tile, 16, 8, 16>;
      if (s == MmaShape{16, 8, 32}) return mma<Fp8Tile, 16, 8, 32>;
      return nullptr;
    default: return nullptr;
  }
}

Mma64 find_mma64(MmaShape s) {
  if (s == MmaShape{8, 8, 4}) return mma_f64<8, 8, 4>;
  if (s == MmaShape{16, 8, 4}) return mma_f64<16, 8, 4>;
  if (s == MmaShape{16, 8, 8}) return mma_f64<16, 8, 8>;
  if (s == MmaShape{16, 8, 16}) return mma_f64<16, 8, 16>;
  return nullptr;
}

}  // namespace assay::sim
