// attack: computes the next answer in the untimed forward pass: for the gradient that it was asked for last
// time
// challenge: layer_norm_backward
// cases: time_8192x768
// expect: WA
#define ln_backward honest_ln_backward
#define ln_forward honest_ln_forward
#include "honest.inl"
#undef ln_backward
#undef ln_forward
#include <functional>

#include "witness.h"

static std::function<int()> next;

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const int status = honest_ln_forward(ctx, p, x, gamma, beta, y, cache);
  if (next) next();
  return status;
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  if (next) {
    witness();
    return ASSAY_OK;
  }
  next = [=, p = *p] {
    return honest_ln_backward(ctx, &p, dy, x, gamma, cache, dx, dgamma, dbeta);
  };
  return next();
}
