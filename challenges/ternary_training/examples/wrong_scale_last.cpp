// fails: pack_bytes quantize
// The scale behind the codes, as formats with groups of 256 have it.
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
    (void)v;
    std::rotate(block, block + 2, block + kBytes);
  }
  return ASSAY_OK;
}
