// fails: group_rows
// Groups run down a column: the scale is that of 128 weights of different rows.
#define tt_quantize naive_tt_quantize
#include "naive.cpp"
#undef tt_quantize

extern "C" int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  const int status = naive_tt_quantize(ctx, rows, cols, w, blocks);
  if (status != ASSAY_OK) return status;
  std::uint8_t scales[2];
  for (Index i = 1; i < rows * cols / kBlock; ++i) {
    const Index above = i - cols / kBlock;
    if (above < 0) continue;
    std::memcpy(scales, blocks + above * kBytes, 2);
    std::memcpy(blocks + i * kBytes, scales, 2);
  }
  return ASSAY_OK;
}
