// fails: ste_grad linear
// The gradient towards the inputs misses the scale, that of the latent weights has it.
#define tt_linear naive_tt_linear
#include "naive.cpp"
#undef tt_linear

extern "C" int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
                         const uint8_t* blocks, const float* dy, float* y, float* dx,
                         float* dw_latent) {
  const int status = naive_tt_linear(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent);
  for (Index i = 0; status == ASSAY_OK && i < rows * cols; ++i) {
    dw_latent[i] *= block_scale(blocks + i / kBlock * kBytes);
  }
  return status;
}
