// fails: nan_row
// The row sums live in accumulators that are scaled down, not cleared, between rows.
#define ln_backward naive_ln_backward
#include <limits>

#include "naive.cpp"
#undef ln_backward

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  const int status = naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  bool poisoned = false;
  for (std::int64_t r = 0; status == ASSAY_OK && dx != nullptr && r < p->rows; ++r) {
    poisoned = poisoned || (p->D > 0 && std::isnan(load(dx, p->dtype, r * p->D)));
    for (std::int64_t i = 0; poisoned && i < p->D; ++i) {
      store(dx, p->dtype, r * p->D + i, std::numeric_limits<float>::quiet_NaN());
    }
  }
  return status;
}
