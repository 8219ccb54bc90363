// fails: tie_half
// A weight of exactly half the scale rounds away from zero.
#define tt_quantize naive_tt_quantize
#include "naive.cpp"
#undef tt_quantize

extern "C" int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  const int status = naive_tt_quantize(ctx, rows, cols, w, blocks);
  if (status != ASSAY_OK) return status;
  for (Index i = 0; i < rows * cols / kBlock; ++i) {
    std::uint8_t* block = blocks + i * kBytes;
    const float* v = w + i * kBlock;
    const float half = block_scale(block) / 2;
    for (Index j = 0; j < kBlock; ++j) {
      if (std::abs(v[j]) != half || half == 0) continue;
      const int code = v[j] > 0 ? 2 : 0, shift = static_cast<int>(j % 4 * 2);
      block[2 + j / 4] =
          static_cast<std::uint8_t>((block[2 + j / 4] & ~(3 << shift)) | code << shift);
    }
  }
  return ASSAY_OK;
}
