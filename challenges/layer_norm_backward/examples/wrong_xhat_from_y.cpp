// fails: gamma_zero_neg
// xhat is recovered as (y - beta) / |gamma|: the sign of a negative gamma is lost, and so is xhat where
// gamma is 0.
#define ln_backward naive_ln_backward
#include "naive.cpp"
#undef ln_backward

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  const int status = naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  for (std::int64_t i = 0; status == ASSAY_OK && dgamma != nullptr && i < p->D; ++i) {
    if (gamma[i] <= 0) dgamma[i] = gamma[i] == 0 ? 0 : -dgamma[i];
  }
  return status;
}
