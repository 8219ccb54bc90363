// fails: pack_bytes quantize
// The first code of a byte in its high bits.
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
    for (Index j = 2; j < kBytes; ++j) {
      const unsigned b = block[j];
      block[j] = static_cast<std::uint8_t>(b << 6 | (b << 2 & 0x30) | (b >> 2 & 0x0c) | b >> 6);
    }
  }
  return ASSAY_OK;
}
