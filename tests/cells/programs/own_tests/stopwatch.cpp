// Judges by time and by the number of calls. It calls each function on a tiny input and never looks
// at the results. It rejects whatever is slower than the median of its own calls, and every other
// process, by a counter that it hopes to keep. Expected: no points. Each try is a new process, and
// time cannot tell apart twins that behave alike.
#include <chrono>
#include <vector>

#include "abi.h"

namespace {

int calls_so_far = 0;

double seconds_of_a_call(assay_ctx* ctx) {
  const ln_params p{sizeof(ln_params), ASSAY_F32, 4, 64, 1e-5f};
  const std::vector<float> x(256, 1.5f), dy(256, 0.5f), gamma(64, 1), beta(64);
  std::vector<float> y(256), dx(256), dgamma(64), dbeta(64);
  std::vector<char> cache(ln_cache_bytes(&p) + 1);
  const auto start = std::chrono::steady_clock::now();
  ln_forward(ctx, &p, x.data(), gamma.data(), beta.data(), y.data(), cache.data());
  ln_backward(ctx, &p, dy.data(), x.data(), gamma.data(), cache.data(), dx.data(), dgamma.data(),
              dbeta.data());
  ++calls_so_far;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  double first = 0, second = 0;
  for (int i = 0; i < 101; ++i) first += seconds_of_a_call(ctx);
  for (int i = 0; i < 101; ++i) second += seconds_of_a_call(ctx);
  return calls_so_far % 2 == 1 || first > second ? 1 : 0;
}
