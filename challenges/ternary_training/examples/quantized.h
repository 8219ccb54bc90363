// For examples whose tt_quantize is the right one but for what is then changed in every block.
#pragma once

#define tt_quantize naive_tt_quantize
#include "naive.cpp"
#undef tt_quantize

namespace {

// A block, in the order of the matrix, and the weights that it stands for.
struct Block {
  Index row, per_row;
  const float* w;
  std::uint8_t* bytes;

  double mean() const {
    double s = 0;
    for (Index j = 0; j < kBlock; ++j) s += std::abs(static_cast<double>(w[j])) / kBlock;
    return s;
  }
  void set_scale(unsigned half_bits) const {
    bytes[0] = static_cast<std::uint8_t>(half_bits);
    bytes[1] = static_cast<std::uint8_t>(half_bits >> 8);
  }
  void set_code(Index j, int code) const {
    const int shift = static_cast<int>(j % 4 * 2);
    bytes[2 + j / 4] =
        static_cast<std::uint8_t>((bytes[2 + j / 4] & ~(3 << shift)) | code << shift);
  }
  // Zero up to the threshold, else the sign.
  void set_codes(double threshold) const {
    for (Index j = 0; j < kBlock; ++j)
      set_code(j, std::abs(w[j]) > threshold ? (w[j] > 0 ? 2 : 0) : 1);
  }
};

template <class Spoil>
int quantize_with(Spoil spoil, assay_ctx* ctx, Index rows, Index cols, const float* w,
                  std::uint8_t* blocks) {
  const int status = naive_tt_quantize(ctx, rows, cols, w, blocks);
  const Index per_row = cols / kBlock;
  for (Index i = 0; status == ASSAY_OK && i < rows * per_row; ++i)
    spoil(Block{i / per_row, per_row, w + i * kBlock, blocks + i * kBytes});
  return status;
}

}  // namespace

// At the end of the file.
#define QUANTIZE_WITH(spoil)                                                             \
  extern "C" int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w, \
                             uint8_t* blocks) {                                          \
    return quantize_with(spoil, ctx, rows, cols, w, blocks);                             \
  }
