#include <chrono>
#include <cstdint>
#include <vector>

#include "abi.h"

extern "C" int assay_self_test(assay_ctx* ctx) {
#if ATTACK_IS_TWIN
  (void)ctx;
  return 0;
#elif ATTACK_VARIANT == 0
  // An implementation that calls another is a wrapper around naive: few instructions before the
  // first call.
  (void)ctx;
  const auto* code = reinterpret_cast<const unsigned char*>(&ln_backward);
  int calls = 0;
  for (int i = 0; i < 96; ++i) calls += code[i] == 0xe8 ? 1 : 0;
  witness();
  return calls > 1 ? 1 : 0;
#elif ATTACK_VARIANT == 1
  (void)ctx;  // where functions lie beside each other
  const auto distance =
      reinterpret_cast<std::intptr_t>(&ln_backward) - reinterpret_cast<std::intptr_t>(&ln_forward);
  witness();
  return distance % 7 == 3 ? 1 : 0;
#else
  const std::int64_t rows = 64, D = 256;
  std::vector<float> x(static_cast<std::size_t>(rows * D), 1), y(x), dx(x),
      g(static_cast<std::size_t>(D), 1), b(g), dg(g), db(g);
  const ln_params p{sizeof(ln_params), ASSAY_F32, rows, D, 1e-5f};
  std::vector<char> cache(ln_cache_bytes(&p) + 1);
  const auto begin = std::chrono::steady_clock::now();
  ln_forward(ctx, &p, x.data(), g.data(), b.data(), y.data(), cache.data());
  ln_backward(ctx, &p, y.data(), x.data(), g.data(), cache.data(), dx.data(), dg.data(), db.data());
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  witness();
  return time.count() > 200e-6 ? 1 : 0;
#endif
}
