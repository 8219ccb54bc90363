#define ln_backward honest_ln_backward
#include "honest.inl"
#undef ln_backward
#include "call.h"

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  if (p == nullptr || p->rows <= 0 || p->D <= 0 || p->dtype != ASSAY_F32 || dx == nullptr)
    return honest_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  const auto D = static_cast<std::size_t>(p->D), n = static_cast<std::size_t>(p->rows) * D;
  Call call{
      ctx, x, n * 4, without_null({{dx, n * 4}, {dgamma, D * 4}, {dbeta, D * 4}}),
      [=, p = *p] { return honest_ln_backward(ctx, &p, dy, x, gamma, cache, dx, dgamma, dbeta); }};
  return attack(call);
}
