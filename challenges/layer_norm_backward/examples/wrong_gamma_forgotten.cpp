// fails: gamma_forgotten gamma_zero_neg basic
// g = dy: gamma is left out of dx.
#define ln_backward naive_ln_backward
#include "naive.cpp"
#undef ln_backward

namespace {

enum class Bug { gamma_forgotten, gamma_late, mean_dropped, projection_dropped, not_divided };

// dx with one mistake; the column sums are naive's.
template <Bug kBug>
int wrong_dx(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x, const float* gamma,
             const void* cache, void* dx, float* dgamma, float* dbeta) {
  const int status = naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  if (status != ASSAY_OK || dx == nullptr || p->D == 0) return status;
  const auto* statistics = static_cast<const Statistics*>(cache);
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const Statistics s = statistics[r];
    const auto g = [&](std::int64_t i) {
      const double d = load(dy, p->dtype, r * p->D + i);
      return kBug == Bug::gamma_forgotten || kBug == Bug::gamma_late ? d : d * gamma[i];
    };
    const auto xhat = [&](std::int64_t i) {
      return (static_cast<double>(load(x, p->dtype, r * p->D + i)) - s.mean) * s.rstd;
    };
    double mean_g = 0, mean_gx = 0;
    for (std::int64_t i = 0; i < p->D; ++i) {
      mean_g += g(i);
      mean_gx += g(i) * xhat(i);
    }
    const double n = kBug == Bug::not_divided ? 1 : static_cast<double>(p->D);
    mean_g = kBug == Bug::mean_dropped ? 0 : mean_g / n;
    mean_gx = kBug == Bug::projection_dropped ? 0 : mean_gx / n;
    for (std::int64_t i = 0; i < p->D; ++i) {
      const double late = kBug == Bug::gamma_late ? gamma[i] : 1;
      store(dx, p->dtype, r * p->D + i,
            static_cast<float>(s.rstd * late * (g(i) - mean_g - xhat(i) * mean_gx)));
    }
  }
  return ASSAY_OK;
}

}  // namespace

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  return wrong_dx<Bug::gamma_forgotten>(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
}
