// fails: partial_block bad_config
// Columns are padded to whole blocks, and any configuration will do.
#define tt_quantize naive_tt_quantize
#define tt_blob_bytes naive_tt_blob_bytes
#include "naive.cpp"
#undef tt_quantize
#undef tt_blob_bytes

extern "C" int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  if (rows < 0 || cols % kBlock == 0) return naive_tt_quantize(ctx, rows, cols, w, blocks);
  float padded[kBlock];
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < cols; c += kBlock, blocks += kBytes) {
      std::fill_n(padded, kBlock, 0.0f);
      std::copy_n(w + r * cols + c, std::min(kBlock, cols - c), padded);
      quantize_block(padded, blocks);
    }
  }
  return ASSAY_OK;
}

extern "C" size_t tt_blob_bytes(const tt_config* c) {
  tt_config padded = *c;
  padded.d = (c->d + 127) / 128 * 128;
  return naive_tt_blob_bytes(&padded);
}
