// slow: time_linear
// Correct, but every weight is taken out of its block again for every product.
#define tt_linear naive_tt_linear
#include "naive.cpp"
#undef tt_linear

extern "C" int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
                         const uint8_t* blocks, const float* dy, float* y, float* dx,
                         float* dw_latent) {
  const int status = naive_tt_linear(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent);
  for (Index m = 0; status == ASSAY_OK && m < M; ++m) {
    for (Index n = 0; n < rows; ++n) {
      float sum = 0;
      for (Index k = 0; k < cols; ++k) {
        const std::uint8_t* block = blocks + (n * cols + k) / kBlock * kBytes;
        const int code = block[2 + k % kBlock / 4] >> (k % 4 * 2) & 3;
        sum += x[m * cols + k] * static_cast<float>(code - 1) * block_scale(block);
      }
      y[m * rows + n] = sum;
    }
  }
  return status;
}
