// Sample entrant of assay, not a model's answer: plausible code with bugs that real answers had.
//   1. Variance as E[x^2] - E[x]^2 in fp32: wrong once the mean is far larger than the deviation.
//   2. One fp32 accumulator per column for dgamma and dbeta: loses digits over many rows.
//   3. eps is 1e-5 whatever the parameters say.
//   4. The NULL outputs that the interface allows are written to.
#include "abi.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  return static_cast<std::size_t>(p->rows) * 2 * sizeof(float);
}

extern "C" int ln_forward(assay_ctx*, const ln_params* p, const void* x, const float* gamma, const float* beta,
                          void* y, void* cache) {
  if (p->rows < 0 || p->D < 0 || p->eps < 0) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32) return ASSAY_ENOTSUP;
  auto* statistics = static_cast<float*>(cache);
  const auto D = static_cast<float>(p->D);
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* row = static_cast<const float*>(x) + r * p->D;
    float* out = static_cast<float*>(y) + r * p->D;
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < p->D; ++i) {
      sum += row[i];
      squares += row[i] * row[i];
    }
    const float mean = static_cast<float>(sum) / D, mean_square = static_cast<float>(squares) / D;
    const float rstd = 1 / std::sqrt(std::max(mean_square - mean * mean, 0.0f) + 1e-5f);
    statistics[2 * r] = mean;
    statistics[2 * r + 1] = rstd;
    for (std::int64_t i = 0; i < p->D; ++i) out[i] = (row[i] - mean) * rstd * gamma[i] + beta[i];
  }
  return ASSAY_OK;
}

extern "C" int ln_backward(assay_ctx*, const ln_params* p, const void* dy, const void* x, const float* gamma,
                           const void* cache, void* dx, float* dgamma, float* dbeta) {
  if (p->rows < 0 || p->D < 0 || p->eps < 0) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32) return ASSAY_ENOTSUP;
  if (p->rows * p->D > 0 && (dy == nullptr || x == nullptr)) return ASSAY_EINVAL;
  const auto* statistics = static_cast<const float*>(cache);
  const auto D = static_cast<float>(p->D);
  for (std::int64_t i = 0; i < p->D; ++i) dgamma[i] = dbeta[i] = 0;
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* xr = static_cast<const float*>(x) + r * p->D;
    const float* dr = static_cast<const float*>(dy) + r * p->D;
    float* out = static_cast<float*>(dx) + r * p->D;
    const float mean = statistics[2 * r], rstd = statistics[2 * r + 1];
    double sum_g = 0, sum_gx = 0;
    for (std::int64_t i = 0; i < p->D; ++i) {
      const float xhat = (xr[i] - mean) * rstd;
      sum_g += dr[i] * gamma[i];
      sum_gx += dr[i] * gamma[i] * xhat;
      dgamma[i] += dr[i] * xhat;
      dbeta[i] += dr[i];
    }
    const float mean_g = static_cast<float>(sum_g) / D, mean_gx = static_cast<float>(sum_gx) / D;
    for (std::int64_t i = 0; i < p->D; ++i) {
      out[i] = rstd * (dr[i] * gamma[i] - mean_g - (xr[i] - mean) * rstd * mean_gx);
    }
  }
  return ASSAY_OK;
}
