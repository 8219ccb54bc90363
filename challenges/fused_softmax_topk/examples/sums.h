// Other ways to sum the exponentials of an fp32 row, for the examples; the winners are naive's.
#pragma once

#include "around_naive.h"

// Of exp((x - max) / T).
struct Sum {
  float max, sum;
};

// Rows that have no finite maximum are left to naive.
inline bool has_finite_maximum(const float* x, std::int64_t V) {
  float max = -std::numeric_limits<float>::infinity();
  bool nan = false;
  for (std::int64_t j = 0; j < V; ++j) {
    max = std::max(max, x[j]);
    nan = nan || std::isnan(x[j]);
  }
  return !nan && !std::isinf(max);
}

// lse and probabilities for sum(x, p).
template <class Summation>
int with_sum(const Call& call, Summation sum) {
  const int status = call.naive();
  const stk_params& p = *call.p;
  if (status != ASSAY_OK || p.dtype != ASSAY_F32) return status;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* x = call.row(r);
    if (!has_finite_maximum(x, p.V)) continue;
    const Sum s = sum(x, p);
    if (call.lse != nullptr) call.lse[r] = s.max / p.temperature + std::log(s.sum);
    for (std::int64_t i = r * p.K; i < r * p.K + std::min<std::int64_t>(p.K, p.V); ++i)
      call.prob[i] = std::exp((x[call.idx[i]] - s.max) / p.temperature - std::log(s.sum));
  }
  return ASSAY_OK;
}

// The same for the sum's logarithm, log_sum(x, p), which takes each logit as it is.
template <class Logarithm>
int with_log_sum(const Call& call, Logarithm log_sum) {
  const int status = call.naive();
  const stk_params& p = *call.p;
  if (status != ASSAY_OK || !call.selects_fp32()) return status;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* x = call.row(r);
    const float lse = log_sum(x, p);
    if (call.lse != nullptr) call.lse[r] = lse;
    for (std::int64_t i = r * p.K; i < (r + 1) * p.K; ++i) {
      if (call.idx[i] >= 0) call.prob[i] = std::exp(x[call.idx[i]] / p.temperature - lse);
    }
  }
  return ASSAY_OK;
}
