// fails: linear_bf16 linear_bf16_odd linear_bf16_long
// Outputs whose sums are rounded to bfloat16 after every term, and a gradient of the latent
// weights, which are fp32, that went through bfloat16.
#define tt_linear_bf16 naive_tt_linear_bf16
#include "naive.cpp"
#undef tt_linear_bf16

extern "C" int tt_linear_bf16(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols,
                              const uint16_t* x, const uint8_t* blocks, const uint16_t* dy,
                              uint16_t* y, uint16_t* dx, float* dw_latent) {
  const int status = naive_tt_linear_bf16(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent);
  if (status != ASSAY_OK) return status;
  const Buffer w(ctx, rows * cols);
  if (w.data == nullptr) return ASSAY_ENOMEM;
  tt_dequantize(ctx, rows, cols, blocks, w);
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < rows; ++n) {
      std::uint16_t sum = 0;
      for (Index k = 0; k < cols; ++k) {
        sum = to_bf16(from_bf16(sum) + from_bf16(x[m * cols + k]) * w[n * cols + k]);
      }
      y[m * rows + n] = sum;
    }
  }
  for (Index i = 0; i < rows * cols; ++i) dw_latent[i] = from_bf16(to_bf16(dw_latent[i]));
  return ASSAY_OK;
}
