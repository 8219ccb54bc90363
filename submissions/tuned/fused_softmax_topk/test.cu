// The entrant's own tests on a device: short rows against a sorted list and a sum of doubles, rows
// that are equal, masked or not finite, and what lies beside a row. Returns 0 if the implementation
// linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "abi.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kUntouched = -77;  // beyond the last slot

// Memory of the device, and a copy of it on the host.
template <class Element>
class Mirror {
 public:
  Mirror(std::int64_t size, Element value) : host_(static_cast<std::size_t>(size), value) {}
  Mirror(const Mirror&) = delete;
  ~Mirror() { cudaFree(device_); }
  Element& operator[](std::int64_t at) { return host_[static_cast<std::size_t>(at)]; }
  Element* on_device() {
    if (device_ == nullptr) cudaMalloc(&device_, bytes());
    cudaMemcpy(device_, host_.data(), bytes(), cudaMemcpyHostToDevice);
    return device_;
  }
  bool fetch() {
    return cudaMemcpy(host_.data(), device_, bytes(), cudaMemcpyDeviceToHost) == cudaSuccess;
  }

 private:
  std::size_t bytes() const { return host_.size() * sizeof(Element); }
  std::vector<Element> host_;
  Element* device_ = nullptr;
};

struct Case {
  std::int64_t rows, V;
  std::int32_t K;
  float temperature = 1;
  std::int64_t gap = 0;  // elements between rows
  bool wants_lse = true;
};

bool close(double got, double want, double tolerance) {
  if (!std::isfinite(want)) return std::isnan(want) ? std::isnan(got) : got == want;
  return std::abs(got - want) <= tolerance;
}

// What a row should give.
struct Expected {
  std::vector<std::int32_t> idx;
  std::vector<double> prob;
  double lse = NAN;

  Expected(const Case& c, const float* x) {
    const auto slots = static_cast<std::size_t>(c.K);
    idx.assign(slots, -1);
    prob.assign(slots, NAN);
    using Entry = std::tuple<float, std::int32_t>;  // sorts by descending logit, then by index
    std::vector<Entry> entries;
    for (std::int64_t j = 0; j < c.V; ++j) {
      if (std::isnan(x[j]) || x[j] == kInf) return;
      entries.emplace_back(0 - x[j], static_cast<std::int32_t>(j));
    }
    std::sort(entries.begin(), entries.end());
    prob.assign(slots, 0);
    const double top = entries.empty() ? -kInf : -std::get<0>(entries[0]);
    double sum = 0;
    for (const Entry& e : entries) {
      if (top > -kInf)
        sum += std::exp((-static_cast<double>(std::get<0>(e)) - top) / c.temperature);
    }
    lse = sum > 0 ? top / c.temperature + std::log(sum) : -kInf;
    for (std::size_t s = 0; s < std::min(slots, entries.size()); ++s) {
      const double logit = -static_cast<double>(std::get<0>(entries[s]));
      idx[s] = std::get<1>(entries[s]);
      if (sum > 0) prob[s] = std::exp((logit - top) / c.temperature) / sum;
    }
  }
};

// make(row, column): a logit.
template <class Make>
bool passes(assay_ctx* ctx, const Case& c, const Make& make) {
  const std::int64_t ld = c.V + c.gap;
  Mirror<float> x(c.rows * ld + 1, 1e38f), prob(c.rows * c.K + 1, kUntouched),
      lse(c.rows + 1, kUntouched);
  Mirror<std::int32_t> idx(c.rows * c.K + 1, kUntouched);
  for (std::int64_t r = 0; r < c.rows; ++r) {
    for (std::int64_t j = 0; j < c.V; ++j) x[r * ld + j] = make(r, j);
  }
  const stk_params p{sizeof(p), ASSAY_F32, c.rows, c.V, ld, c.K, c.temperature};
  float* const device_lse = lse.on_device();
  if (softmax_topk(ctx, &p, x.on_device(), idx.on_device(), prob.on_device(),
                   c.wants_lse ? device_lse : nullptr) != ASSAY_OK ||
      cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) != cudaSuccess ||
      !idx.fetch() || !prob.fetch() || !lse.fetch()) {
    return false;
  }
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const Expected want(c, &x[r * ld]);
    if (c.wants_lse && !close(lse[r], want.lse, 1e-5 * (2 + std::abs(want.lse)))) return false;
    for (std::int32_t s = 0; s < c.K; ++s) {
      const std::int64_t at = r * c.K + s;
      const auto slot = static_cast<std::size_t>(s);
      if (idx[at] != want.idx[slot]) return false;
      // Relative, and beyond it what fp32 holds least.
      if (!close(prob[at], want.prob[slot], 2e-5 * want.prob[slot] + 1e-37)) return false;
    }
  }
  return idx[c.rows * c.K] == kUntouched && prob[c.rows * c.K] == kUntouched &&
         lse[c.rows] == kUntouched;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::mt19937 random(20);
  std::normal_distribution<float> normal;
  const auto drawn = [&](std::int64_t, std::int64_t) { return 3 * normal(random); };
  const Case drawn_cases[] = {
      {3, 777, 9},       {5, 130, 40}, {2, 300, 100}, {7, 61, 5, 0.4f},        {4, 90, 6, 2.5f},
      {6, 101, 7, 1, 3}, {3, 20, 33},  {1, 1, 1},     {3, 50, 4, 1, 0, false}, {2, 64, 64, 1, 64}};
  for (const Case& c : drawn_cases) {
    if (!passes(ctx, c, drawn)) return 1;
  }
  const auto steps = [](std::int64_t r, std::int64_t j) {
    return static_cast<float>((j * 7 + r) % 5);
  };
  const auto signed_zeros = [](std::int64_t, std::int64_t j) { return j % 2 == 0 ? -0.0f : 0.0f; };
  const auto masked = [](std::int64_t r, std::int64_t j) {
    return r == 0 || j % 40 != 11 ? -kInf : static_cast<float>(j);
  };
  const auto poisoned = [&](std::int64_t r, std::int64_t j) {
    return j == 150 && r < 2 ? (r == 0 ? NAN : kInf) : normal(random);
  };
  const auto far = [&](std::int64_t r, std::int64_t) {
    return normal(random) + (r % 2 == 0 ? 2000.0f : -2000.0f);
  };
  const Case c{4, 201, 14, 1, 2};
  const bool right = passes(ctx, c, steps) && passes(ctx, c, signed_zeros) &&
                     passes(ctx, c, masked) && passes(ctx, c, poisoned) && passes(ctx, c, far);
  return right ? 0 : 1;
}
