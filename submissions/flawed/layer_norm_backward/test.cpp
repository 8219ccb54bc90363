// The entrant's own test, weak in the way real ones were: it only asks that dbeta is the column sum of dy and
// that dx sums to about zero over a row when gamma is one.
#include "abi.h"

#include <cmath>
#include <vector>

extern "C" int assay_self_test(assay_ctx* ctx) {
  constexpr int kRows = 4, kD = 64;
  const ln_params p{sizeof(ln_params), ASSAY_F32, kRows, kD, 1e-5f};
  std::vector<float> x(kRows * kD), dy(x.size()), y(x.size()), dx(x.size()), gamma(kD, 1.0f), beta(kD), dgamma(kD), dbeta(kD);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i));
    dy[i] = std::cos(2.0f * static_cast<float>(i));
  }
  std::vector<char> cache(ln_cache_bytes(&p) + 1);
  if (ln_forward(ctx, &p, x.data(), gamma.data(), beta.data(), y.data(), cache.data()) != ASSAY_OK) return 1;
  if (ln_backward(ctx, &p, dy.data(), x.data(), gamma.data(), cache.data(), dx.data(), dgamma.data(), dbeta.data()) != ASSAY_OK) return 1;
  for (int i = 0; i < kD; ++i) {
    float sum = 0;
    for (int r = 0; r < kRows; ++r) sum += dy[static_cast<std::size_t>(r * kD + i)];
    if (std::abs(sum - dbeta[static_cast<std::size_t>(i)]) > 1e-3f) return 1;
  }
  for (int r = 0; r < kRows; ++r) {
    float sum = 0;
    for (int i = 0; i < kD; ++i) sum += dx[static_cast<std::size_t>(r * kD + i)];
    if (std::abs(sum) > 1e-2f) return 1;
  }
  return 0;
}
