// The expert implementation for a CPU.
//
// Napkin arithmetic, fp32, per element: 4 bytes read once, and about 10 vector operations for exp
// and the maximum. At 3.6 GHz with 16 lanes and one multiply-add per cycle that is 2.2 ns per 16
// elements, or 29 GB/s a core; two cores read about 35 GB/s together. Bound by memory on one pass,
// with little to spare: the selection must cost less than a third of the pass, and nothing may be
// read twice from DRAM.
//
// One pass over a row: online softmax (Milakov and Gimelshein 2018) against a maximum that is
// updated every 4096 elements, and the lane-wise maxima of every 128 elements, kept. Those maxima
// then give a bound below the K-th best of up to 64 Ki elements: a value that K of them exceed,
// found by bisection over twice as many subsets as K, so that about 1.4 K elements are above it.
// Only what stands behind a maximum above it is read again, from the L2 cache. Survivors are kept
// as integer keys (value, then lower index), cut back to K by nth_element when their buffer is
// full, and sorted by counting. Threads take contiguous rows.
//
// Measured on two cores of an EPYC (Zen 4): exp as 2^floor(t) 2^(t - floor(t)) by vreduceps and
// vscalefps 2.1 ns per 16 elements, by integer arithmetic 2.6 ns. Without selection 36 GB/s, what
// the machine copies; with K = 8 of 4096 or K = 50 of 50257 24 GB/s. The rest of the selection is
// mispredicted branches and the latency of the bisection.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
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
constexpr int kGroupVectors = 8;
constexpr std::int64_t kGroup = kGroupVectors * kLanes;  // elements with common maxima
constexpr std::int64_t kBlockGroups = 32;                // per update of the maximum
constexpr std::int64_t kBatchGroups = 512;               // per selection: 64 Ki elements

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

Vec splat(float f) { return f - Vec{}; }
Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// 2^t: a polynomial for the fraction of t in [0, 1), relative error 1.5e-7. NaN stays, -inf gives
// 0.
Vec exp2_vector(Vec t) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  const Vec r =
      std::bit_cast<Vec>(_mm512_reduce_ps(std::bit_cast<__m512>(t), _MM_FROUND_TO_NEG_INF));
#else
  t = t < -126.0f ? splat(-126.0f) : t;
  t = t > 127.0f ? splat(127.0f) : t;
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23 rounds to integer
  const Vec nearest = (t + magic) - magic;
  const Vec floor = nearest > t ? nearest - 1.0f : nearest;
  const Vec r = t - floor;
#endif
  Vec y = splat(1.87757669e-3f);
  y = y * r + 8.98933969e-3f;
  y = y * r + 5.58263175e-2f;
  y = y * r + 2.40153611e-1f;
  y = y * r + 6.93153083e-1f;
  y = y * r + 9.9999994e-1f;
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  return std::bit_cast<Vec>(_mm512_scalef_ps(std::bit_cast<__m512>(y), std::bit_cast<__m512>(t)));
#else
  const VecI exponent = (std::bit_cast<VecI>(floor + magic) - std::bit_cast<VecI>(magic)) << 23;
  const Vec scaled = std::bit_cast<Vec>(std::bit_cast<VecI>(y) + exponent);
  return t == t ? scaled : t;
#endif
}

float horizontal_max(Vec v) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(std::bit_cast<__m512>(v));
#else
  float m = v[0];
  for (int i = 1; i < kLanes; ++i) m = std::max(m, v[i]);
  return m;
#endif
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

// Integers in the order of floats. -0 becomes +0.
std::uint32_t ordered(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
float from_ordered(std::uint32_t u) {
  return std::bit_cast<float>((u & 0x80000000u) != 0 ? u & 0x7fffffffu : ~u);
}

// A candidate: larger values first, then lower indices.
using Key = std::uint64_t;
constexpr int kKeys = 8;
typedef Key VecK __attribute__((vector_size(8 * kKeys)));
Key key(float value, std::int64_t index) {
  return static_cast<Key>(ordered(value)) << 32 | ~static_cast<std::uint32_t>(index);
}
float value_of(Key k) { return from_ordered(static_cast<std::uint32_t>(k >> 32)); }
std::int32_t index_of(Key k) { return static_cast<std::int32_t>(~static_cast<std::uint32_t>(k)); }

// A value that at least `wanted` of the lanes exceed, hardly more than that if the values allow; at
// least `low`, which is returned when fewer exceed it. No lane exceeds `high`.
float bound_below(const Vec* maxima, std::int64_t n, std::int32_t wanted, float low, float high) {
  const auto exceeding = [&](float f) {
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) count += std::popcount(greater(maxima[i], f));
    return count;
  };
  Vec least = -maxima[0];
  for (std::int64_t i = 1; i < n; ++i) least = larger(-maxima[i], least);
  // Every lane exceeds what stands two below the least; one below +0 stands -0, which is equal.
  std::uint32_t a = std::max(ordered(low), ordered(-horizontal_max(least)) - 2), b = ordered(high);
  for (int step = 0; step < 32 && b > a + 1; ++step) {
    const std::uint32_t middle = a + (b - a) / 2;
    const std::int32_t count = exceeding(from_ordered(middle));
    (count >= wanted ? a : b) = middle;
    if (count >= wanted && count <= wanted + wanted / 8) break;
  }
  return from_ordered(a);
}

// Writes first + i for every set bit i and returns how many there are; up to kLanes values after
// those may be overwritten.
std::size_t list_lanes(std::uint32_t mask, std::int32_t first, std::int32_t* out) {
#if defined(__AVX512F__)
  const __m512i all =
      _mm512_add_epi32(_mm512_set1_epi32(first),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), all));
#else
  std::int32_t* next = out;
  for (; mask != 0; mask &= mask - 1) *next++ = first + std::countr_zero(mask);
  mask = static_cast<std::uint32_t>((std::uint64_t{1} << (next - out)) - 1);
#endif
  return static_cast<std::size_t>(std::popcount(mask));
}

// The best K of what was offered.
class TopK {
 public:
  TopK(Key* buffer, std::int32_t K) : buffer_(buffer), k_(K), capacity_(capacity(K)) {}

  static std::size_t capacity(std::int32_t K) { return 2 * static_cast<std::size_t>(K) + kGroup; }

  // Selects from n groups, n <= kBatchGroups, given their maxima; `group(i)` gives the elements of
  // group i.
  template <class Group>
  void offer(const Vec* maxima, std::int64_t n, std::int64_t first, float max, Group group) {
    raise_threshold(maxima, n, max);
    for (std::int64_t i = 0; i < n; i += kBlockGroups) {
      offer_block(maxima, i, std::min(i + kBlockGroups, n), first, group);
    }
  }

  std::size_t finish() {
    if (size_ <= kMostRanked) return rank();
    if (size_ > static_cast<std::size_t>(k_)) shrink();
    std::sort(buffer_, buffer_ + size_, std::greater<>());
    return size_;
  }

 private:
  void raise_threshold(const Vec* maxima, std::int64_t n, float max) {
    constexpr std::int64_t kMost = 128;
    const std::int64_t subsets = std::min<std::int64_t>(kMost, (2 * k_ + kLanes - 1) / kLanes);
    if (n < subsets || k_ > kMost * kLanes || !(max > threshold_)) return;
    Vec folded[kMost];
    for (std::int64_t j = 0; j < subsets; ++j) {
      Vec m = maxima[j];
      for (std::int64_t i = j + subsets; i < n; i += subsets) m = larger(maxima[i], m);
      folded[j] = m;
    }
    threshold_ = bound_below(folded, subsets, k_, threshold_, max);
  }

  // Where a lane of a group's maxima exceeds the threshold, some of the eight elements that it
  // stands for do. The lanes are listed first, without branches that depend on the data.
  template <class Group>
  void offer_block(const Vec* maxima, std::int64_t begin, std::int64_t end, std::int64_t first,
                   Group group) {
    std::int32_t lanes[(kBlockGroups + 1) * kLanes];
    std::size_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      count += list_lanes(greater(maxima[i], threshold_), static_cast<std::int32_t>(i * kLanes),
                          lanes + count);
    }
    const float* x = nullptr;
    std::int64_t last = -1;
    for (std::size_t h = 0; h < count; ++h) {
      const std::int64_t i = lanes[h] / kLanes, lane = lanes[h] % kLanes;
      if (i != last) x = group(last = i);
      offer_lane(x, lane, first + i * kGroup);
    }
  }

  void offer_lane(const float* x, std::int64_t lane, std::int64_t first) {
    std::uint32_t mask = 0;
    for (int i = 0; i < kGroupVectors; ++i) {
      mask |= static_cast<std::uint32_t>(x[lane + i * kLanes] > threshold_) << i;
    }
    for (; mask != 0; mask &= mask - 1) {
      const std::int64_t at = lane + std::countr_zero(mask) * kLanes;
      buffer_[size_++] = key(x[at], first + at);
    }
    if (size_ + kKeys > capacity_) shrink();
  }

  // Sorts by counting, for each candidate, those before it: quadratic, but eight at a time.
  std::size_t rank() {
    Key sorted[kMostRanked];
    std::fill(buffer_ + size_, buffer_ + (size_ + kKeys - 1) / kKeys * kKeys, Key{0});
    for (std::size_t i = 0; i < size_; ++i) {
      VecK before{};
      for (std::size_t j = 0; j < size_; j += kKeys) {
        VecK others;
        std::memcpy(&others, buffer_ + j, sizeof others);
        before -= std::bit_cast<VecK>(others > buffer_[i]);
      }
      Key place = 0;
      for (int l = 0; l < kKeys; ++l) place += before[l];
      sorted[place] = buffer_[i];
    }
    size_ = std::min(size_, static_cast<std::size_t>(k_));
    std::copy(sorted, sorted + size_, buffer_);
    return size_;
  }

  void shrink() {
    std::nth_element(buffer_, buffer_ + k_ - 1, buffer_ + size_, std::greater<>());
    size_ = static_cast<std::size_t>(k_);
    threshold_ = std::max(threshold_, value_of(buffer_[k_ - 1]));
  }

  static constexpr std::size_t kMostRanked = 512;

  Key* buffer_;
  std::int32_t k_;
  std::size_t capacity_, size_ = 0;
  float threshold_ = -kInf;  // every later candidate must exceed it
};

// Sums exp((x - max) / T) of a row, in units of 2.
struct Sum {
  float max = -kInf;
  double sum = 0;  // NaN when the row holds NaN
};

// A row as groups of kGroup floats; behind the end stands -inf.
template <class Element>
class Row;

template <>
class Row<float> {
 public:
  Row(const float* x, std::int64_t n) : x_(x), n_(n) {}
  float at(std::int64_t j) const { return x_[j]; }
  void prefetch(std::int64_t j) const {
    constexpr std::int64_t kAhead = 2048;
    for (std::int64_t i = 0; i < kGroup; i += kLanes) __builtin_prefetch(x_ + j + kAhead + i);
  }
  const float* group(std::int64_t j, float* local) const {
    if (j + kGroup <= n_) return x_ + j;
    std::fill(std::copy(x_ + j, x_ + n_, local), local + kGroup, -kInf);
    return local;
  }

 private:
  const float* x_;
  std::int64_t n_;
};

template <>
class Row<std::uint16_t> {
 public:
  Row(const std::uint16_t* x, std::int64_t n) : x_(x), n_(n) {}
  float at(std::int64_t j) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x_[j]) << 16);
  }
  void prefetch(std::int64_t) const {}
  const float* group(std::int64_t j, float* local) const {
    const std::int64_t n = std::min(kGroup, n_ - j);
    if (n == kGroup) {
      for (std::int64_t i = 0; i < kGroup; ++i) local[i] = at(j + i);
    } else {
      for (std::int64_t i = 0; i < n; ++i) local[i] = at(j + i);
      std::fill(local + n, local + kGroup, -kInf);
    }
    return local;
  }

 private:
  const std::uint16_t* x_;
  std::int64_t n_;
};

struct Block {
  Vec maxima;
  double sum;  // of 2^((x - max) scale)
};

// n groups from column `first` on; leaves the maxima of each in `maxima`.
template <class R>
Block sweep(const R& row, std::int64_t first, std::int64_t n, float max, float scale, Vec* maxima) {
  alignas(64) float local[kGroup];
  const float reference = max > -kInf ? max : 0.0f;
  Vec best = splat(-kInf), sums[4] = {};
  for (std::int64_t g = 0; g < n; ++g) {
    row.prefetch(first + g * kGroup);
    const float* x = row.group(first + g * kGroup, local);
    Vec group = splat(-kInf);
#pragma GCC unroll 8
    for (int i = 0; i < kGroupVectors; ++i) {
      const Vec v = load(x + i * kLanes);
      group = larger(v, group);
      sums[i % 4] += exp2_vector((v - reference) * scale);
    }
    maxima[g] = group;
    best = larger(group, best);
  }
  const Vec total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += total[i];
  return {best, sum};
}

// Adds n groups from column `first` on.
template <class R>
void add_block(Sum& s, const R& row, std::int64_t first, std::int64_t n, float scale, Vec* maxima) {
  constexpr float kFar = 8;  // powers of two that a term may exceed 1 without much rounding
  if (first == 0) {
    alignas(64) float local[kGroup];
    const float* x = row.group(0, local);
    Vec best = load(x);
    for (int i = 1; i < kGroupVectors; ++i) best = larger(load(x + i * kLanes), best);
    s.max = horizontal_max(larger(best, splat(-kInf)));
  }
  Block block = sweep(row, first, n, s.max, scale, maxima);
  const float max = horizontal_max(block.maxima);
  if (!(max > s.max)) {
    s.sum += block.sum;
    return;
  }
  if (!((max - s.max) * scale <= kFar)) {
    block.sum = sweep(row, first, n, max, scale, maxima).sum;
    s.sum = s.max > -kInf ? s.sum * std::exp2((static_cast<double>(s.max) - max) * scale) : 0;
    s.sum += block.sum;
  } else {
    s.sum = (s.sum + block.sum) * std::exp2((static_cast<double>(s.max) - max) * scale);
  }
  s.max = max;
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

template <class Element>
void one_row(const stk_params& p, const Element* x, Key* buffer, const Outputs& o) {
  const Row<Element> row(x, p.V);
  const float scale = static_cast<float>(1.4426950408889634 / p.temperature);
  alignas(64) Vec maxima[kBatchGroups];
  TopK top(buffer, std::max(p.K, 1));
  Sum s;
  const std::int64_t groups = (p.V + kGroup - 1) / kGroup;
  for (std::int64_t g = 0; g < groups; g += kBatchGroups) {
    const std::int64_t n = std::min(kBatchGroups, groups - g);
    for (std::int64_t b = 0; b < n; b += kBlockGroups) {
      add_block(s, row, (g + b) * kGroup, std::min(kBlockGroups, n - b), scale, maxima + b);
    }
    if (p.K == 0 || s.max == kInf || std::isnan(s.sum)) continue;
    alignas(64) float local[kGroup];
    top.offer(maxima, n, g * kGroup, s.max,
              [&](std::int64_t i) { return row.group((g + i) * kGroup, local); });
  }
  if (std::isnan(s.sum) || s.max == kInf) return write_poisoned(p, o);
  const double log_sum = s.max > -kInf ? std::log(s.sum) : 0;
  if (o.lse != nullptr) {
    *o.lse = s.max > -kInf
                 ? static_cast<float>(static_cast<double>(s.max) / p.temperature + log_sum)
                 : -kInf;
  }
  const auto found = p.K > 0 ? static_cast<std::int32_t>(top.finish()) : 0;
  for (std::int32_t k = 0; k < found; ++k) {
    const double logp =
        (static_cast<double>(value_of(buffer[k])) - s.max) / p.temperature - log_sum;
    o.idx[k] = index_of(buffer[k]);
    o.prob[k] = static_cast<float>(o.logarithm ? logp : std::exp(logp));
  }
  write_rest(p, o, found, [&](std::int64_t j) { return row.at(j); });
}

bool valid(const stk_params* p, const void* logits, const std::int32_t* idx, const float* prob) {
  return p != nullptr && p->size == sizeof(stk_params) && p->rows >= 0 && p->V >= 0 &&
         p->ld >= p->V && p->K >= 0 && p->temperature > 0 && std::isfinite(p->temperature) &&
         (p->rows * p->V == 0 || logits != nullptr) &&
         (p->rows * p->K == 0 || (idx != nullptr && prob != nullptr));
}

template <class Element>
void some_rows(const stk_params& p, const Element* x, Outputs o, Key* buffer, std::int64_t begin,
               std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    one_row(
        p, x + r * p.ld, buffer,
        {o.idx + r * p.K, o.prob + r * p.K, o.lse != nullptr ? o.lse + r : nullptr, o.logarithm});
  }
}

int run(assay_ctx* ctx, const stk_params* p, const void* logits, const Outputs& o) {
  if (!valid(p, logits, o.idx, o.prob)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  constexpr std::int64_t kWorthAThread = 1 << 16;  // elements
  const auto threads = static_cast<int>(std::clamp<std::int64_t>(
      std::min(p->rows, p->rows * p->V / kWorthAThread), 1, std::max(ctx->nthreads, 1)));
  const std::size_t capacity = TopK::capacity(std::max(p->K, 1));
  auto* buffers = static_cast<Key*>(
      ctx->alloc(ctx, static_cast<std::size_t>(threads) * capacity * sizeof(Key), 64, 0));
  if (buffers == nullptr) return ASSAY_ENOMEM;
  const auto work = [&](int t) {
    const std::int64_t begin = p->rows * t / threads, end = p->rows * (t + 1) / threads;
    Key* buffer = buffers + static_cast<std::size_t>(t) * capacity;
    if (p->dtype == ASSAY_F32) {
      some_rows(*p, static_cast<const float*>(logits), o, buffer, begin, end);
    } else {
      some_rows(*p, static_cast<const std::uint16_t*>(logits), o, buffer, begin, end);
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
