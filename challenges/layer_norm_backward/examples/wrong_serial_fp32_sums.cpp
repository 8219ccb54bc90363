// fails: long_sum
// One fp32 accumulator per column over all rows.
#define ln_backward naive_ln_backward
#include "naive.cpp"
#undef ln_backward

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  const int status = naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  const auto* statistics = static_cast<const Statistics*>(cache);
  for (std::int64_t i = 0; status == ASSAY_OK && dgamma != nullptr && dbeta != nullptr && i < p->D;
       ++i) {
    float g = 0, b = 0;
    for (std::int64_t r = 0; r < p->rows; ++r) {
      const float d = load(dy, p->dtype, r * p->D + i);
      g += d * (load(x, p->dtype, r * p->D + i) - statistics[r].mean) * statistics[r].rstd;
      b += d;
    }
    dgamma[i] = g;
    dbeta[i] = b;
  }
  return status;
}
