// The entrant's own test, weak in the way real ones were: one random shape, and the indices are compared
// after sorting them, which hides their order.
#include "abi.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

extern "C" int assay_self_test(assay_ctx* ctx) {
  constexpr std::int64_t kV = 1000;
  constexpr std::int32_t kK = 10;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(kV), prob(kK);
  for (float& v : x) v = normal(random);
  std::vector<std::int32_t> got(kK), want(kV);
  const stk_params p{sizeof(stk_params), ASSAY_F32, 1, kV, kV, kK, 1.0f};
  if (softmax_topk(ctx, &p, x.data(), got.data(), prob.data(), nullptr) != ASSAY_OK) return 1;
  std::iota(want.begin(), want.end(), 0);
  std::sort(want.begin(), want.end(), [&](std::int32_t a, std::int32_t b) { return x[static_cast<std::size_t>(a)] > x[static_cast<std::size_t>(b)]; });
  want.resize(kK);
  std::sort(want.begin(), want.end());
  std::sort(got.begin(), got.end());
  return got == want ? 0 : 1;
}
