// The entrant's own tests: small rows against a stable sort and a double sum, and the corner cases of
// the specification. Returns 0 if the implementation linked with it is accepted.
#include "abi.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  std::int64_t rows, V, pad;
  std::int32_t K;
  float temperature = 1;
};

bool near(double got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= 2e-5 * (std::abs(want) + 1e-30);
}

bool row_is_right(const Case& c, const float* x, const std::int32_t* idx, const float* prob, float lse) {
  const bool poisoned = std::any_of(x, x + c.V, [](float v) { return std::isnan(v) || v == kInf; });
  std::vector<std::int32_t> order(static_cast<std::size_t>(c.V));
  std::iota(order.begin(), order.end(), 0);
  double max = -kInf, sum = 0;
  if (!poisoned) {
    std::stable_sort(order.begin(), order.end(), [x](std::int32_t a, std::int32_t b) { return x[a] > x[b]; });
    for (std::int64_t j = 0; j < c.V; ++j) max = std::max<double>(max, x[j]);
    for (std::int64_t j = 0; j < c.V && max > -kInf; ++j) sum += std::exp((x[j] - max) / c.temperature);
  }
  const double want_lse = poisoned ? NAN : max > -kInf ? max / c.temperature + std::log(sum) : -kInf;
  if (poisoned ? !std::isnan(lse) : std::isinf(want_lse) ? lse != want_lse : std::abs(lse - want_lse) > 1e-5 * (2 + std::abs(want_lse))) return false;
  for (std::int32_t k = 0; k < c.K; ++k) {
    const bool used = k < c.V;
    const std::int32_t want = poisoned || !used ? -1 : order[static_cast<std::size_t>(k)];
    if (idx[k] != want) return false;
    const double p = poisoned ? NAN : !used || x[want] == -kInf ? 0 : std::exp((x[want] - max) / c.temperature - std::log(sum));
    if (!near(prob[k], p)) return false;
  }
  return true;
}

// `make(row, column)` gives the logits.
template <class Make>
bool passes(assay_ctx* ctx, const Case& c, Make make) {
  const std::int64_t ld = c.V + c.pad;
  std::vector<float> x(static_cast<std::size_t>(c.rows * ld + 1), 3e38f);
  for (std::int64_t r = 0; r < c.rows; ++r) {
    for (std::int64_t j = 0; j < c.V; ++j) x[static_cast<std::size_t>(r * ld + j)] = make(r, j);
  }
  std::vector<std::int32_t> idx(static_cast<std::size_t>(c.rows * c.K + 1), -77);
  std::vector<float> prob(idx.size(), -1.0f), lse(static_cast<std::size_t>(c.rows + 1), -1.0f);
  const stk_params p{sizeof(stk_params), ASSAY_F32, c.rows, c.V, ld, c.K, c.temperature};
  if (softmax_topk(ctx, &p, x.data(), idx.data(), prob.data(), lse.data()) != ASSAY_OK) return false;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    if (!row_is_right(c, x.data() + r * ld, idx.data() + r * c.K, prob.data() + r * c.K, lse[static_cast<std::size_t>(r)])) return false;
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto noise = [&](std::int64_t, std::int64_t) { return normal(random); };
  for (const Case& c : {Case{3, 1000, 0, 10}, Case{9, 301, 5, 33}, Case{17, 127, 0, 100, 0.5f}, Case{2, 40, 0, 64}, Case{33, 2050, 3, 7}}) {
    if (!passes(ctx, c, noise)) return 1;
  }
  const auto constant = [](std::int64_t, std::int64_t) { return 2.0f; };
  const auto rising = [](std::int64_t, std::int64_t j) { return 0.001f * static_cast<float>(j); };
  const auto falling = [](std::int64_t, std::int64_t j) { return -0.001f * static_cast<float>(j); };
  const auto shifted = [&](std::int64_t, std::int64_t) { return normal(random) + 300.0f; };
  const auto spike = [&](std::int64_t, std::int64_t j) { return j == 998 ? 80.0f : normal(random); };
  const auto zeros = [](std::int64_t, std::int64_t j) { return j % 3 == 0 ? -0.0f : 0.0f; };
  const auto few = [](std::int64_t, std::int64_t j) { return j % 400 == 7 ? 1.0f : -kInf; };
  const auto none = [](std::int64_t, std::int64_t) { return -kInf; };
  const auto nan = [&](std::int64_t r, std::int64_t j) { return r == 1 && j == 5 ? NAN : normal(random); };
  const auto strip = [&](std::int64_t, std::int64_t j) { return j % 256 == 3 ? 10.0f + 0.01f * static_cast<float>(j) : normal(random); };
  const Case c{4, 999, 1, 12};
  const bool corner = passes(ctx, c, constant) && passes(ctx, c, rising) && passes(ctx, c, falling) &&
                      passes(ctx, c, shifted) && passes(ctx, c, spike) && passes(ctx, c, zeros) &&
                      passes(ctx, c, few) && passes(ctx, c, none) && passes(ctx, c, nan) &&
                      passes(ctx, Case{2, 20000, 0, 64}, strip) && passes(ctx, Case{2, 20000, 0, 200}, rising);
  return corner ? 0 : 1;
}
