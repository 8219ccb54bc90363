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
// Vectors are as wide as the target's registers. With AVX2 (two cores of an EPYC, Zen 3, which copies
// 20 GB/s) 16-lane generic vectors became scalar code: 53 ms for 256 x 50257, K = 50, and 5.7 ms since
// lanes are 8, masks come from vmovmskps, lists of lanes from a table of 256 bytes' set bits, and
// keys are compared four at a time (1.2 instead of 4.5 ms for 16 x 128256, K = 256).
//
// Measured on two cores of an EPYC (Zen 4): exp as 2^floor(t) 2^(t - floor(t)) by vreduceps and
// vscalefps 2.1 ns per 16 elements, by integer arithmetic 2.6 ns. Without selection 36 GB/s, what
// the machine copies; with K = 8 of 4096 or K = 50 of 50257 24 GB/s. The rest of the selection is
// mispredicted branches and the latency of the bisection.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "abi.h"
#include "par/row_sum.h"
#include "par/selection.h"
#include "shared/baselines/threads.h"

namespace {

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
  // Finite, so that 0 times it is 0.
  const auto scale = static_cast<float>(
      std::min(1.4426950408889634 / p.temperature, double{std::numeric_limits<float>::max()}));
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
  on_threads(threads, [&](std::int64_t t) {
    const std::int64_t begin = p->rows * t / threads, end = p->rows * (t + 1) / threads;
    Key* buffer = buffers + static_cast<std::size_t>(t) * capacity;
    if (p->dtype == ASSAY_F32) {
      some_rows(*p, static_cast<const float*>(logits), o, buffer, begin, end);
    } else {
      some_rows(*p, static_cast<const std::uint16_t*>(logits), o, buffer, begin, end);
    }
  });
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
