// The entrant's own tests on a device: small rows against a stable sort and a double sum, and the
// corner cases of the specification. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "abi.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// An array on the device, with the contents of one on the host.
template <class Element>
class Array {
 public:
  explicit Array(const std::vector<Element>& contents) : size_(contents.size()) {
    cudaMalloc(&data_, size_ * sizeof(Element));
    cudaMemcpy(data_, contents.data(), size_ * sizeof(Element), cudaMemcpyHostToDevice);
  }
  Array(const Array&) = delete;
  ~Array() { cudaFree(data_); }
  Element* data() const { return data_; }
  std::vector<Element> contents() const {
    std::vector<Element> v(size_);
    cudaMemcpy(v.data(), data_, size_ * sizeof(Element), cudaMemcpyDeviceToHost);
    return v;
  }

 private:
  Element* data_ = nullptr;
  std::size_t size_;
};

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

bool row_is_right(const Case& c, const float* x, const std::int32_t* idx, const float* prob,
                  float lse) {
  const bool poisoned = std::any_of(x, x + c.V, [](float v) { return std::isnan(v) || v == kInf; });
  std::vector<std::int32_t> order(static_cast<std::size_t>(c.V));
  std::iota(order.begin(), order.end(), 0);
  double max = -kInf, sum = 0;
  if (!poisoned) {
    std::stable_sort(order.begin(), order.end(),
                     [x](std::int32_t a, std::int32_t b) { return x[a] > x[b]; });
    max = x[order[0]];
    for (std::int64_t j = 0; j < c.V && max > -kInf; ++j)
      sum += std::exp((x[j] - max) / c.temperature);
  }
  const double log_sum = std::log(sum);
  const double want_lse = poisoned ? NAN : max > -kInf ? max / c.temperature + log_sum : -kInf;
  const bool lse_is_right = std::isfinite(want_lse)
                                ? std::abs(lse - want_lse) <= 1e-5 * (2 + std::abs(want_lse))
                                : near(lse, want_lse);
  if (!lse_is_right) return false;
  for (std::int32_t k = 0; k < c.K; ++k) {
    const bool used = k < c.V;
    const std::int32_t want = poisoned || !used ? -1 : order[static_cast<std::size_t>(k)];
    if (idx[k] != want) return false;
    const double p = poisoned ? NAN
                     : !used || x[want] == -kInf
                         ? 0
                         : std::exp((x[want] - max) / c.temperature - log_sum);
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
  const auto slots = static_cast<std::size_t>(c.rows * c.K + 1);
  const Array<float> on_x(x), on_prob(std::vector<float>(slots, -1.0f)),
      on_lse(std::vector<float>(static_cast<std::size_t>(c.rows + 1), -1.0f));
  const Array<std::int32_t> on_idx(std::vector<std::int32_t>(slots, -77));
  const stk_params p{sizeof(stk_params), ASSAY_F32, c.rows, c.V, ld, c.K, c.temperature};
  if (softmax_topk(ctx, &p, on_x.data(), on_idx.data(), on_prob.data(), on_lse.data()) != ASSAY_OK)
    return false;
  if (cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) != cudaSuccess) return false;
  const std::vector<std::int32_t> idx = on_idx.contents();
  const std::vector<float> prob = on_prob.contents(), lse = on_lse.contents();
  for (std::int64_t r = 0; r < c.rows; ++r) {
    if (!row_is_right(c, x.data() + r * ld, idx.data() + r * c.K, prob.data() + r * c.K,
                      lse[static_cast<std::size_t>(r)]))
      return false;
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto noise = [&](std::int64_t, std::int64_t) { return normal(random); };
  for (const Case& c : {Case{3, 1000, 0, 10}, Case{9, 301, 5, 33}, Case{17, 127, 0, 100, 0.5f},
                        Case{2, 40, 0, 64}}) {
    if (!passes(ctx, c, noise)) return 1;
  }
  const auto constant = [](std::int64_t, std::int64_t) { return 2.0f; };
  const auto rising = [](std::int64_t, std::int64_t j) { return 0.001f * static_cast<float>(j); };
  const auto shifted = [&](std::int64_t, std::int64_t) { return normal(random) + 300.0f; };
  const auto zeros = [](std::int64_t, std::int64_t j) { return j % 3 == 0 ? -0.0f : 0.0f; };
  const auto few = [](std::int64_t, std::int64_t j) { return j % 100 == 7 ? 1.0f : -kInf; };
  const auto none = [](std::int64_t, std::int64_t) { return -kInf; };
  const auto nan = [&](std::int64_t r, std::int64_t j) {
    return r == 1 && j == 5 ? NAN : normal(random);
  };
  const Case c{4, 299, 1, 12};
  const bool corner = passes(ctx, c, constant) && passes(ctx, c, rising) &&
                      passes(ctx, c, shifted) && passes(ctx, c, zeros) && passes(ctx, c, few) &&
                      passes(ctx, c, none) && passes(ctx, c, nan);
  return corner ? 0 : 1;
}
