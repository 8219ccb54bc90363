// fails: older_cache
// Mean and rstd are left in a static array instead of the cache: another forward replaces them.
#define ln_forward naive_ln_forward
#define ln_backward naive_ln_backward
#include "naive.cpp"
#undef ln_forward
#undef ln_backward

#include <vector>

static std::vector<Statistics> latest;

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const int status = naive_ln_forward(ctx, p, x, gamma, beta, y, cache);
  if (status == ASSAY_OK) {
    const auto* s = static_cast<const Statistics*>(cache);
    latest.assign(s, s + p->rows);
  }
  return status;
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  if (!valid(p) || static_cast<std::int64_t>(latest.size()) < p->rows) {
    return naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  }
  return naive_ln_backward(ctx, p, dy, x, gamma, latest.data(), dx, dgamma, dbeta);
}
