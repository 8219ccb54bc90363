// The plain implementation: one row at a time on one thread, a pass for the maximum, one for the
// sum, then a partial sort of all column indices.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "abi.h"

namespace {

float widen(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

bool valid(const stk_params* p, const void* logits, const std::int32_t* idx, const float* prob) {
  if (p == nullptr || p->size != sizeof(stk_params)) return false;
  if (p->rows < 0 || p->V < 0 || p->ld < p->V || p->K < 0) return false;
  if (!(p->temperature > 0) || !std::isfinite(p->temperature)) return false;
  if (p->rows * p->V > 0 && logits == nullptr) return false;
  return p->rows * p->K == 0 || (idx != nullptr && prob != nullptr);
}

enum class Output { probability, logarithm };

struct Row {
  float* x;             // widened copy
  std::int32_t* order;  // column indices
};

void one_row(const stk_params& p, Row row, Output output, std::int32_t* idx, float* prob,
             float* lse) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float* x = row.x;
  float max = -kInf;
  bool poisoned = false;
  for (std::int64_t j = 0; j < p.V; ++j) {
    max = std::max(max, x[j]);
    poisoned = poisoned || std::isnan(x[j]) || x[j] == kInf;
  }
  if (poisoned) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill(idx, idx + p.K, -1);
    std::fill(prob, prob + p.K, nan);
    if (lse != nullptr) *lse = nan;
    return;
  }
  double sum = 0;
  for (std::int64_t j = 0; j < p.V; ++j) {
    if (x[j] > -kInf) sum += std::exp((x[j] - max) / p.temperature);
  }
  const float log_sum = sum > 0 ? max / p.temperature + static_cast<float>(std::log(sum)) : -kInf;
  if (lse != nullptr) *lse = log_sum;

  const auto n = static_cast<std::int32_t>(std::min<std::int64_t>(p.K, p.V));
  std::iota(row.order, row.order + p.V, 0);
  std::partial_sort(row.order, row.order + n, row.order + p.V, [x](std::int32_t a, std::int32_t b) {
    return x[a] > x[b] || (x[a] == x[b] && a < b);
  });
  for (std::int32_t k = 0; k < p.K; ++k) {
    const bool used = k < n;
    const bool masked = !used || !(x[row.order[k]] > -kInf);
    idx[k] = used ? row.order[k] : -1;
    // (x - max) first: x / T - lse would round twice at the size of lse.
    const float logp =
        masked ? -kInf
               : (x[row.order[k]] - max) / p.temperature - static_cast<float>(std::log(sum));
    prob[k] = output == Output::logarithm ? logp : masked ? 0.0f : std::exp(logp);
  }
}

int run(assay_ctx* ctx, const stk_params* p, const void* logits, Output output, std::int32_t* idx,
        float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(p->V, 1)) * 4;
  Row row{static_cast<float*>(ctx->alloc(ctx, bytes, 64, 0)),
          static_cast<std::int32_t*>(ctx->alloc(ctx, bytes, 64, 0))};
  if (row.x == nullptr || row.order == nullptr) {
    ctx->free(ctx, row.order);
    ctx->free(ctx, row.x);
    return ASSAY_ENOMEM;
  }
  for (std::int64_t r = 0; r < p->rows; ++r) {
    for (std::int64_t j = 0; j < p->V; ++j) {
      const std::int64_t at = r * p->ld + j;
      row.x[j] = p->dtype == ASSAY_F32 ? static_cast<const float*>(logits)[at]
                                       : widen(static_cast<const std::uint16_t*>(logits)[at]);
    }
    one_row(*p, row, output, idx + r * p->K, prob + r * p->K, lse != nullptr ? lse + r : nullptr);
  }
  ctx->free(ctx, row.order);
  ctx->free(ctx, row.x);
  return ASSAY_OK;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  return run(ctx, p, logits, Output::probability, idx, prob, lse);
}

extern "C" int log_softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                                std::int32_t* idx, float* logprob, float* lse) {
  return run(ctx, p, logits, Output::logarithm, idx, logprob, lse);
}

extern "C" int softmax_topk_top_p(assay_ctx* ctx, const stk_params* p, const void* logits,
                                  float top_p, std::int32_t* idx, float* prob, float* lse,
                                  std::int32_t* count) {
  if (!(top_p > 0 && top_p <= 1) || (p != nullptr && p->rows > 0 && count == nullptr))
    return ASSAY_EINVAL;
  const int status = run(ctx, p, logits, Output::probability, idx, prob, lse);
  for (std::int64_t r = 0; status == ASSAY_OK && r < p->rows; ++r) {
    const float* row = prob + r * p->K;
    const auto n = static_cast<std::int32_t>(std::min<std::int64_t>(p->K, p->V));
    double sum = 0;
    std::int32_t kept = 0;
    while (kept < n && sum < top_p) sum += row[kept++];
    count[r] = n > 0 && row[0] > 0 ? kept : 0;  // NaN and fully masked rows keep nothing
  }
  return status;
}
