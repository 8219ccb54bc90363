// fails: ste_grad linear
// The gradient of the latent weights is stopped where the weight was rounded to zero.
#define tt_linear naive_tt_linear
#include "naive.cpp"
#undef tt_linear

extern "C" int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
                         const uint8_t* blocks, const float* dy, float* y, float* dx,
                         float* dw_latent) {
  const int status = naive_tt_linear(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent);
  float w[kBlock];
  for (Index i = 0; status == ASSAY_OK && i < rows * cols; i += kBlock) {
    dequantize_block(blocks + i / kBlock * kBytes, w);
    for (Index j = 0; j < kBlock; ++j) {
      if (w[j] == 0) dw_latent[i + j] = 0;
    }
  }
  return status;
}
