// Sample entrant of assay, not a model's answer: fast and correct, by plain loops that the compiler
// vectorises. Rows are shared among threads. A row is read in blocks of 2048 that stay in the L1
// cache: block maximum, sum of exponentials relative to the running maximum, and a scan for columns
// above the K-th best so far, which after a few blocks finds almost none. fp32 and bf16,
// logarithms, top-p. Without the pragma no loop that chooses between two values is vectorised for
// AVX2.
#pragma GCC optimize("no-math-errno", "no-trapping-math")

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int64_t kBlock = 2048, kLanes = 32, kGroup = 64;

// exp(x) for x in [-87, 0]: 2^n by the exponent bits times a degree-6 polynomial of the rest.
inline float exp_small(float x) {
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const float y =
      1.0f + r +
      r * r *
          (0.5f + r * (1.66666655e-1f +
                       r * (4.16657959e-2f +
                            r * (8.33345191e-3f + r * (1.39819995e-3f + r * 1.98756915e-4f)))));
  const auto exponent = (std::bit_cast<std::int32_t>(shifted) - 0x4B400000) << 23;
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(y) + exponent);
}

struct Scratch {
  std::pair<float, std::int32_t>* kept;  // capacity 2 K + 2 kGroup
};

struct Row {
  std::int32_t* idx;
  float* prob;
  float* lse;
};

class RowState {
 public:
  RowState(const stk_params& p, Scratch scratch) : p_(p), kept_(scratch.kept) {}

  void block(const float* x, std::int64_t first, std::int64_t n) {
    float lanes[kLanes];
    std::fill(lanes, lanes + kLanes, -kInf);
    std::int32_t odd = 0;
    std::int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) {
        lanes[l] = x[j + l] > lanes[l] ? x[j + l] : lanes[l];
        odd |= x[j + l] == x[j + l] ? 0 : 1;
      }
    }
    float block_max = *std::max_element(lanes, lanes + kLanes);
    for (; j < n; ++j) {
      block_max = std::max(block_max, x[j]);
      odd |= x[j] == x[j] ? 0 : 1;
    }
    nan_ = nan_ || odd != 0;
    if (block_max > max_) {
      sum_ = max_ > -kInf
                 ? sum_ * std::exp((static_cast<double>(max_) - block_max) / p_.temperature)
                 : 0;
      max_ = block_max;
    }
    if (max_ > -kInf && max_ < kInf) add_exponentials(x, n);
    if (p_.K > 0 && block_max > threshold_) collect(x, first, n);
  }

  bool poisoned() const { return nan_ || max_ == kInf; }
  float max() const { return max_; }
  double log_sum() const { return std::log(sum_); }

  // The winners in order; their number.
  std::int32_t finish() {
    if (size_ > p_.K) shrink();
    std::sort(kept_, kept_ + size_, before);
    return static_cast<std::int32_t>(size_);
  }

 private:
  static bool before(const std::pair<float, std::int32_t>& a,
                     const std::pair<float, std::int32_t>& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  }

  void add_exponentials(const float* x, std::int64_t n) {
    const float m = max_;
    // Of tiny temperatures the inverse is beyond all numbers.
    const float inverse = std::min(1 / p_.temperature, std::numeric_limits<float>::max());
    float lanes[kLanes] = {};
    std::int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) {
        const float z = (x[j + l] - m) * inverse;
        const float e = exp_small(z > -87.0f ? z : -87.0f);
        lanes[l] += z > -87.0f ? e : 0.0f;
      }
    }
    double sum = 0;
    for (const float lane : lanes) sum += lane;
    for (; j < n; ++j) sum += std::exp((x[j] - m) * inverse);
    sum_ += sum;
  }

  // Groups without a value above the threshold, soon nearly all, cost one vectorised comparison.
  void collect(const float* x, std::int64_t first, std::int64_t n) {
    for (std::int64_t j = 0; j < n; j += kGroup) {
      const std::int64_t m = std::min(kGroup, n - j);
      std::int32_t any = 0;
      for (std::int64_t l = 0; l < m; ++l) any |= x[j + l] > threshold_ ? 1 : 0;
      if (any == 0) continue;
      for (std::int64_t l = j; l < j + m; ++l) {
        kept_[size_] = {x[l], static_cast<std::int32_t>(first + l)};
        size_ += x[l] > threshold_ ? 1 : 0;
      }
      if (size_ >= 2 * p_.K + kGroup) shrink();
    }
  }

  void shrink() {
    std::nth_element(kept_, kept_ + p_.K - 1, kept_ + size_, before);
    size_ = p_.K;
    threshold_ = kept_[p_.K - 1].first;
  }

  const stk_params& p_;
  std::pair<float, std::int32_t>* kept_;
  std::int64_t size_ = 0;
  float threshold_ = -kInf, max_ = -kInf;
  double sum_ = 0;
  bool nan_ = false;
};

// `at(j)` is column j; `widen(j, n)` n columns from j as floats.
template <class Widen, class At>
void one_row(const stk_params& p, Scratch scratch, Row out, bool logarithm, Widen widen, At at) {
  RowState state(p, scratch);
  for (std::int64_t j = 0; j < p.V; j += kBlock) {
    const std::int64_t n = std::min(kBlock, p.V - j);
    state.block(widen(j, n), j, n);
  }
  if (state.poisoned()) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill(out.idx, out.idx + p.K, -1);
    std::fill(out.prob, out.prob + p.K, nan);
    if (out.lse != nullptr) *out.lse = nan;
    return;
  }
  const bool empty = !(state.max() > -kInf);
  const double log_sum = empty ? 0 : state.log_sum();
  if (out.lse != nullptr) {
    *out.lse = empty
                   ? -kInf
                   : static_cast<float>(static_cast<double>(state.max()) / p.temperature + log_sum);
  }
  const std::int32_t found = p.K > 0 ? state.finish() : 0;
  std::int64_t masked = 0;
  for (std::int32_t k = 0; k < p.K; ++k) {
    if (k < found) {
      const double logp =
          (static_cast<double>(scratch.kept[k].first) - state.max()) / p.temperature - log_sum;
      out.idx[k] = scratch.kept[k].second;
      out.prob[k] = static_cast<float>(logarithm ? logp : std::exp(logp));
    } else {  // the first -inf columns, then nothing
      while (masked < p.V && at(masked) != -kInf) ++masked;
      out.idx[k] = masked < p.V ? static_cast<std::int32_t>(masked++) : -1;
      out.prob[k] = logarithm ? -kInf : 0.0f;
    }
  }
}

float from_bf16(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

void some_rows(const stk_params& p, const void* logits, Scratch scratch, Row out, bool logarithm,
               std::int64_t begin, std::int64_t end) {
  alignas(64) float wide[kBlock];
  for (std::int64_t r = begin; r < end; ++r) {
    const Row row{out.idx + r * p.K, out.prob + r * p.K,
                  out.lse != nullptr ? out.lse + r : nullptr};
    if (p.dtype == ASSAY_F32) {
      const float* x = static_cast<const float*>(logits) + r * p.ld;
      one_row(
          p, scratch, row, logarithm, [x](std::int64_t j, std::int64_t) { return x + j; },
          [x](std::int64_t j) { return x[j]; });
    } else {
      const std::uint16_t* x = static_cast<const std::uint16_t*>(logits) + r * p.ld;
      one_row(
          p, scratch, row, logarithm,
          [&](std::int64_t j, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) wide[i] = from_bf16(x[j + i]);
            return wide;
          },
          [x](std::int64_t j) { return from_bf16(x[j]); });
    }
  }
}

int run(assay_ctx* ctx, const stk_params* p, const void* logits, Row out, bool logarithm) {
  if (p == nullptr || p->rows < 0 || p->V < 0 || p->K < 0 || p->ld < p->V || !(p->temperature > 0))
    return ASSAY_EINVAL;
  if (p->rows * p->V > 0 && logits == nullptr) return ASSAY_EINVAL;
  if (p->rows * p->K > 0 && (out.idx == nullptr || out.prob == nullptr)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  const auto threads = static_cast<int>(std::clamp<std::int64_t>(
      std::min(p->rows, p->rows * p->V >> 15), 1, std::max(ctx->nthreads, 1)));
  using Kept = std::pair<float, std::int32_t>;
  const std::size_t each = 2 * static_cast<std::size_t>(p->K) + 2 * kGroup;
  auto* kept = static_cast<Kept*>(
      ctx->alloc(ctx, each * sizeof(Kept) * static_cast<std::size_t>(threads), 64, 0));
  if (kept == nullptr) return ASSAY_ENOMEM;
  const auto work = [&](int t) {
    some_rows(*p, logits, {kept + each * static_cast<std::size_t>(t)}, out, logarithm,
              p->rows * t / threads, p->rows * (t + 1) / threads);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (auto& thread : others) thread.join();
  ctx->free(ctx, kept);
  return ASSAY_OK;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  return run(ctx, p, logits, {idx, prob, lse}, false);
}

extern "C" int log_softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                                std::int32_t* idx, float* logprob, float* lse) {
  return run(ctx, p, logits, {idx, logprob, lse}, true);
}

extern "C" int softmax_topk_top_p(assay_ctx* ctx, const stk_params* p, const void* logits,
                                  float top_p, std::int32_t* idx, float* prob, float* lse,
                                  std::int32_t* count) {
  if (!(top_p > 0 && top_p <= 1) || (p != nullptr && p->rows > 0 && count == nullptr))
    return ASSAY_EINVAL;
  const int status = run(ctx, p, logits, {idx, prob, lse}, false);
  for (std::int64_t r = 0; status == ASSAY_OK && r < p->rows; ++r) {
    const float* row = prob + r * p->K;
    const auto n = static_cast<std::int32_t>(std::min<std::int64_t>(p->K, p->V));
    double sum = 0;
    count[r] = 0;
    while (count[r] < n && row[0] > 0 && sum < top_p) sum += row[count[r]++];
  }
  return status;
}
