// The expert implementation for a CPU.
//
// Napkin arithmetic, fp32, per element: 4 bytes read once; one compare against the running maximum,
// one against the K-th best, and one exp of about 12 vector operations. A 2.6 GHz core with 16
// lanes does that in about 1 ns / 16 lanes x 14 operations / 2 ports = 0.3 ns, and a core streams
// about 10 GB/s = 0.4 ns an element: bound by memory on one pass, so nothing may be read twice from
// DRAM.
//
// One pass over the row in blocks that stay in the L1 cache: block maximum, rescale the running sum
// if it rises (online softmax, Milakov and Gimelshein 2018), vector exp. Candidates for the top K
// pass a filter against the K-th best so far, tested on the maximum of 128 elements at a time, so
// that about K ln(V / K) elements of a random row ever reach scalar code; the buffer is cut back to
// K by nth_element when it is full, O(1) amortised even for ascending rows. Threads take contiguous
// rows.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "abi.h"

namespace {

constexpr int kLanes = 16;
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kLanes)));

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int64_t kGroup = 8 * kLanes;   // elements per candidate test
constexpr std::int64_t kBlock = 32 * kGroup;  // 16 KiB of fp32

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

Vec splat(float f) { return f - Vec{}; }

// exp for x <= 0: 2^n times a polynomial on [-ln2/2, ln2/2] (coefficients of Cephes' expf),
// relative error below 2 ulp; 0 below -87.
Vec exp_nonpositive(Vec x) {
  const Vec clamped = x > -87.0f ? x : splat(-87.0f);
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23 rounds to integer
  const Vec shifted = clamped * 1.44269504f + magic;
  const Vec n = shifted - magic;
  Vec r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec y = splat(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  const VecI exponent = (std::bit_cast<VecI>(shifted) - std::bit_cast<VecI>(magic)) << 23;
  const Vec scaled = std::bit_cast<Vec>(std::bit_cast<VecI>(y) + exponent);
  return x > -87.0f ? scaled : Vec{};
}

float horizontal_max(Vec v) {
  float m = v[0];
  for (int i = 1; i < kLanes; ++i) m = std::max(m, v[i]);
  return m;
}

// Bit i: lane i of v is greater than f.
std::uint32_t greater(Vec v, float f) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(std::bit_cast<__m512>(v), _mm512_set1_ps(f), _CMP_GT_OQ);
#else
  std::uint32_t mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= static_cast<std::uint32_t>(v[i] > f) << i;
  return mask;
#endif
}

struct Candidate {
  float value;
  std::int32_t index;
};

bool before(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

// The best K of what was offered, and the value a newcomer must exceed.
class TopK {
 public:
  TopK(Candidate* buffer, std::int32_t K) : buffer_(buffer), k_(K), capacity_(capacity(K)) {}

  static std::size_t capacity(std::int32_t K) { return 2 * static_cast<std::size_t>(K) + kGroup; }

  float threshold() const { return threshold_; }

  // Offers columns [first, first + kGroup) in order of index.
  void offer_group(const float* x, std::int64_t first) {
    for (std::int64_t j = 0; j < kGroup; j += kLanes) {
      std::uint32_t mask = greater(load(x + j), threshold_);
      for (; mask != 0; mask &= mask - 1) push(x, first, j + std::countr_zero(mask));
    }
    make_room();
  }

  // Offers columns [first, first + n), n < kGroup.
  void offer_tail(const float* x, std::int64_t first, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (x[j] > threshold_) push(x, first, j);
    }
    make_room();
  }

  std::size_t finish() {
    if (size_ > static_cast<std::size_t>(k_)) shrink();
    std::sort(buffer_, buffer_ + size_, before);
    return size_;
  }

 private:
  void push(const float* x, std::int64_t first, std::int64_t j) {
    buffer_[size_++] = {x[j], static_cast<std::int32_t>(first + j)};
  }

  void make_room() {
    if (size_ + kGroup > capacity_) shrink();
  }

  void shrink() {
    std::nth_element(buffer_, buffer_ + k_ - 1, buffer_ + size_, before);
    size_ = static_cast<std::size_t>(k_);
    threshold_ = buffer_[k_ - 1].value;
  }

  Candidate* buffer_;
  std::int32_t k_;
  std::size_t capacity_, size_ = 0;
  float threshold_ = -kInf;
};

struct Sum {
  float max = -kInf;
  double sum = 0;  // of exp((x - max) / T)
  bool nan = false;
};

// The maximum of n elements and whether one is NaN, offering groups to the candidates on the way.
float scan(const float* x, std::int64_t first, std::int64_t n, TopK* top, bool& nan) {
  Vec best = splat(-kInf);
  VecI bad{};
  std::int64_t j = 0;
  for (; j + kGroup <= n; j += kGroup) {
    Vec group = load(x + j);
    bad |= group != group;
    for (int i = 1; i < 8; ++i) {
      const Vec v = load(x + j + i * kLanes);
      bad |= v != v;
      group = v > group ? v : group;
    }
    best = group > best ? group : best;
    if (top != nullptr && greater(group, top->threshold()) != 0) top->offer_group(x + j, first + j);
  }
  float max = horizontal_max(best);
  for (int i = 0; i < kLanes; ++i) nan |= bad[i] != 0;
  for (std::int64_t i = j; i < n; ++i) {
    nan |= std::isnan(x[i]);
    max = std::max(max, x[i]);
  }
  if (top != nullptr && j < n) top->offer_tail(x + j, first + j, n - j);
  return max;
}

double sum_exp(const float* x, std::int64_t n, float max, float inverse_t) {
  Vec a{}, b{};
  std::int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    a += exp_nonpositive((load(x + j) - max) * inverse_t);
    b += exp_nonpositive((load(x + j + kLanes) - max) * inverse_t);
  }
  a += b;
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += a[i];
  for (; j < n; ++j) sum += std::exp((x[j] - max) * inverse_t);
  return sum;
}

void add_block(Sum& s, const float* x, std::int64_t first, std::int64_t n, float t, TopK* top) {
  const float max = scan(x, first, n, top, s.nan);
  if (max > s.max) {
    s.sum = s.max > -kInf ? s.sum * std::exp((static_cast<double>(s.max) - max) / t) : 0;
    s.max = max;
  }
  if (s.max > -kInf && s.max < kInf && !s.nan) s.sum += sum_exp(x, n, s.max, 1 / t);
}

struct Outputs {
  std::int32_t* idx;
  float* prob;
  float* lse;
  bool logarithm;
};

void write_poisoned(const stk_params& p, const Outputs& o) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill(o.idx, o.idx + p.K, -1);
  std::fill(o.prob, o.prob + p.K, nan);
  if (o.lse != nullptr) *o.lse = nan;
}

// Slots behind the finite winners: the first -inf columns, then none.
template <class At>
void write_rest(const stk_params& p, const Outputs& o, std::int32_t from, At at) {
  const float nothing = o.logarithm ? -kInf : 0.0f;
  std::int64_t column = 0;
  for (std::int32_t k = from; k < p.K; ++k) {
    while (column < p.V && at(column) != -kInf) ++column;
    o.idx[k] = column < p.V ? static_cast<std::int32_t>(column++) : -1;
    o.prob[k] = nothing;
  }
}

// `widen(first, n)` gives n consecutive columns as floats.
template <class Widen, class At>
void one_row(const stk_params& p, Candidate* buffer, const Outputs& o, Widen widen, At at) {
  TopK top(buffer, std::max(p.K, 1));
  Sum s;
  for (std::int64_t j = 0; j < p.V; j += kBlock) {
    const std::int64_t n = std::min(kBlock, p.V - j);
    add_block(s, widen(j, n), j, n, p.temperature, p.K > 0 ? &top : nullptr);
  }
  if (s.nan || s.max == kInf) return write_poisoned(p, o);
  const double log_sum = s.max > -kInf ? std::log(s.sum) : 0;
  if (o.lse != nullptr) {
    *o.lse = s.max > -kInf
                 ? static_cast<float>(static_cast<double>(s.max) / p.temperature + log_sum)
                 : -kInf;
  }
  const auto found = p.K > 0 ? static_cast<std::int32_t>(top.finish()) : 0;
  for (std::int32_t k = 0; k < found; ++k) {
    const double logp = (static_cast<double>(buffer[k].value) - s.max) / p.temperature - log_sum;
    o.idx[k] = buffer[k].index;
    o.prob[k] = static_cast<float>(o.logarithm ? logp : std::exp(logp));
  }
  write_rest(p, o, found, at);
}

bool valid(const stk_params* p, const void* logits, const std::int32_t* idx, const float* prob) {
  return p != nullptr && p->size == sizeof(stk_params) && p->rows >= 0 && p->V >= 0 &&
         p->ld >= p->V && p->K >= 0 && p->temperature > 0 && std::isfinite(p->temperature) &&
         (p->rows * p->V == 0 || logits != nullptr) &&
         (p->rows * p->K == 0 || (idx != nullptr && prob != nullptr));
}

float widen_bf16(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

void rows_f32(const stk_params& p, const float* x, Outputs o, Candidate* buffer, std::int64_t begin,
              std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const float* row = x + r * p.ld;
    const Outputs out{o.idx + r * p.K, o.prob + r * p.K, o.lse != nullptr ? o.lse + r : nullptr,
                      o.logarithm};
    one_row(
        p, buffer, out, [row](std::int64_t j, std::int64_t) { return row + j; },
        [row](std::int64_t j) { return row[j]; });
  }
}

void rows_bf16(const stk_params& p, const std::uint16_t* x, Outputs o, Candidate* buffer,
               std::int64_t begin, std::int64_t end) {
  alignas(64) float block[kBlock];
  for (std::int64_t r = begin; r < end; ++r) {
    const std::uint16_t* row = x + r * p.ld;
    const Outputs out{o.idx + r * p.K, o.prob + r * p.K, o.lse != nullptr ? o.lse + r : nullptr,
                      o.logarithm};
    one_row(
        p, buffer, out,
        [&](std::int64_t j, std::int64_t n) {
          for (std::int64_t i = 0; i < n; ++i) block[i] = widen_bf16(row[j + i]);
          return block;
        },
        [row](std::int64_t j) { return widen_bf16(row[j]); });
  }
}

int run(assay_ctx* ctx, const stk_params* p, const void* logits, const Outputs& o) {
  if (!valid(p, logits, o.idx, o.prob)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  constexpr std::int64_t kWorthAThread = 1 << 16;  // elements
  const auto threads = static_cast<int>(std::clamp<std::int64_t>(
      std::min(p->rows, p->rows * p->V / kWorthAThread), 1, std::max(ctx->nthreads, 1)));
  const std::size_t capacity = TopK::capacity(std::max(p->K, 1));
  auto* buffers = static_cast<Candidate*>(
      ctx->alloc(ctx, static_cast<std::size_t>(threads) * capacity * sizeof(Candidate), 64, 0));
  if (buffers == nullptr) return ASSAY_ENOMEM;
  const auto work = [&](int t) {
    const std::int64_t begin = p->rows * t / threads, end = p->rows * (t + 1) / threads;
    Candidate* buffer = buffers + static_cast<std::size_t>(t) * capacity;
    if (p->dtype == ASSAY_F32) {
      rows_f32(*p, static_cast<const float*>(logits), o, buffer, begin, end);
    } else {
      rows_bf16(*p, static_cast<const std::uint16_t*>(logits), o, buffer, begin, end);
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& thread : others) thread.join();
  ctx->free(ctx, buffers);
  return ASSAY_OK;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  return run(ctx, p, logits, {idx, prob, lse, false});
}

extern "C" int log_softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                                std::int32_t* idx, float* logprob, float* lse) {
  return run(ctx, p, logits, {idx, logprob, lse, true});
}

extern "C" int softmax_topk_top_p(assay_ctx* ctx, const stk_params* p, const void* logits,
                                  float top_p, std::int32_t* idx, float* prob, float* lse,
                                  std::int32_t* count) {
  if (!(top_p > 0 && top_p <= 1) || p == nullptr || (p->rows > 0 && count == nullptr))
    return ASSAY_EINVAL;
  const int status = run(ctx, p, logits, {idx, prob, lse, false});
  if (status != ASSAY_OK) return status;
  const auto n = static_cast<std::int32_t>(std::min<std::int64_t>(p->K, p->V));
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* row = prob + r * p->K;
    double sum = 0;
    std::int32_t kept = 0;
    if (n > 0 && row[0] > 0) {
      while (kept < n && sum < top_p) sum += row[kept++];
    }
    count[r] = kept;
  }
  return ASSAY_OK;
}
