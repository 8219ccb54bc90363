// fails: d1 d2 d7 d1025
// Groups of eight elements, and no loop for the rest of the row: dx is not written there.
#define ln_backward naive_ln_backward
#include "naive.cpp"
#undef ln_backward

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  if (dx == nullptr || !valid(p) || p->dtype != ASSAY_F32 || p->rows * p->D == 0) {
    return naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  }
  float* out = static_cast<float*>(dx);
  const std::int64_t n = p->rows * p->D;
  auto* whole =
      static_cast<float*>(ctx->alloc(ctx, static_cast<std::size_t>(n) * sizeof(float), 64, 0));
  if (whole == nullptr) return ASSAY_ENOMEM;
  const int status = naive_ln_backward(ctx, p, dy, x, gamma, cache, whole, dgamma, dbeta);
  for (std::int64_t i = 0; status == ASSAY_OK && i < n; ++i) {
    if (i % p->D < p->D / 8 * 8) out[i] = whole[i];
  }
  ctx->free(ctx, whole);
  return status;
}
