// fails: offset_1e4 offset_1e6 tiny_var
// Variance as E[x^2] - E[x]^2 in fp32: nothing is left of it once the mean is 10^4 deviations away.
#define ln_forward naive_ln_forward
#include "naive.cpp"
#undef ln_forward

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const int status = naive_ln_forward(ctx, p, x, gamma, beta, y, cache);
  if (status != ASSAY_OK || p->D == 0) return status;
  auto* s = static_cast<Statistics*>(cache);
  for (std::int64_t r = 0; r < p->rows; ++r) {
    float sum = 0, square = 0;
    for (std::int64_t i = 0; i < p->D; ++i) {
      const float v = load(x, p->dtype, r * p->D + i);
      sum += v;
      square += v * v;
    }
    const float mean = sum / static_cast<float>(p->D);
    const float var = std::max(square / static_cast<float>(p->D) - mean * mean, 0.0f);
    s[r] = {mean, 1 / std::sqrt(var + p->eps)};
  }
  return ASSAY_OK;
}
