// fails: linear_bf16 linear_bf16_odd linear_bf16_long
// The gradient of the latent weights, which are fp32, goes through bfloat16.
#define tt_linear_bf16 naive_tt_linear_bf16
#include "naive.cpp"
#undef tt_linear_bf16

extern "C" int tt_linear_bf16(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols,
                              const uint16_t* x, const uint8_t* blocks, const uint16_t* dy,
                              uint16_t* y, uint16_t* dx, float* dw_latent) {
  const int status = naive_tt_linear_bf16(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent);
  for (Index i = 0; status == ASSAY_OK && i < rows * cols; ++i) {
    dw_latent[i] = from_bf16(to_bf16(dw_latent[i]));
  }
  return status;
}
