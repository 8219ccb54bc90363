// naive.cu with room for a mistake around tt_linear, for the examples in CUDA: each defines
// answer().
#pragma once

#define tt_linear naive_tt_linear
#include "naive.cu"
#undef tt_linear

// The arguments of tt_linear.
struct Product {
  assay_ctx* ctx;
  std::int64_t M, rows, cols;
  const float* x;
  const std::uint8_t* blocks;
  const float* dy;
  float *y, *dx, *dw_latent;

  int naive() const { return naive_tt_linear(ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent); }
  // Whether the call is right and there is something to multiply.
  bool multiplies() const {
    return M > 0 && rows > 0 && cols > 0 && cols % kBlock == 0 && x != nullptr &&
           blocks != nullptr && dy != nullptr && y != nullptr && dx != nullptr &&
           dw_latent != nullptr;
  }
};

// What tt_linear does. May throw bad_alloc.
static int answer(const Product&);

extern "C" int tt_linear(assay_ctx* ctx, std::int64_t M, std::int64_t rows, std::int64_t cols,
                         const float* x, const std::uint8_t* blocks, const float* dy, float* y,
                         float* dx, float* dw_latent) {
  const Product call{ctx, M, rows, cols, x, blocks, dy, y, dx, dw_latent};
  try {
    return call.multiplies() ? answer(call) : call.naive();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}
