// Other ways to select the winners of an fp32 row, for the examples.
#pragma once

#include <functional>

#include "around_naive.h"

// The order of the winners.
struct Before {
  const float* x;
  bool operator()(std::int32_t a, std::int32_t b) const {
    return x[a] > x[b] || (x[a] == x[b] && a < b);
  }
};

// The columns that select(x, p) gives, best first; probabilities follow from the best one's.
template <class Select>
int with_winners(const Call& call, Select select) {
  const int status = call.naive();
  const stk_params& p = *call.p;
  if (status != ASSAY_OK || p.dtype != ASSAY_F32 || p.V == 0 || p.K == 0) return status;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* x = call.row(r);
    std::int32_t* idx = call.idx + r * p.K;
    float* prob = call.prob + r * p.K;
    if (idx[0] < 0 || !(prob[0] > 0)) continue;  // poisoned or masked
    const float best = x[idx[0]], best_prob = prob[0];
    const std::vector<std::int32_t> winners = select(x, p);
    for (std::int32_t k = 0; k < p.K; ++k) {
      const bool used = k < static_cast<std::int32_t>(winners.size());
      idx[k] = used ? winners[k] : -1;
      prob[k] = used ? best_prob * std::exp((x[winners[k]] - best) / p.temperature) : 0.0f;
    }
  }
  return ASSAY_OK;
}

// Selection among the columns that keep(row, V) leaves, the others being -inf; probabilities over
// the whole row.
template <class Keep>
int among_kept(const Call& call, Keep keep) {
  if (!call.selects_fp32()) return call.naive();
  const stk_params& p = *call.p;
  std::vector<float> sums(static_cast<std::size_t>(p.rows));
  stk_params sum_only = p;
  sum_only.K = 0;
  int status =
      naive_softmax_topk(call.ctx, &sum_only, call.logits, call.idx, call.prob, sums.data());
  if (status != ASSAY_OK) return status;
  std::vector<float> copy(call.row(0), call.row(p.rows));
  for (std::int64_t r = 0; r < p.rows; ++r) keep(copy.data() + r * p.ld, p.V);
  status = naive_softmax_topk(call.ctx, &p, copy.data(), call.idx, call.prob, nullptr);
  if (status != ASSAY_OK) return status;
  for (std::int64_t i = 0; i < p.rows * p.K; ++i) {
    const std::int64_t r = i / p.K;
    const float sum = sums[static_cast<std::size_t>(r)];
    if (call.idx[i] >= 0 && call.prob[i] > 0)
      call.prob[i] = std::exp(call.row(r)[call.idx[i]] / p.temperature - sum);
    if (call.lse != nullptr) call.lse[r] = sum;
  }
  return ASSAY_OK;
}

// Keeps the `quota` largest of the columns first, first + stride, ... before `end`.
inline void keep_largest(float* x, std::int64_t first, std::int64_t stride, std::int64_t end,
                         std::size_t quota) {
  std::vector<float*> members;
  for (std::int64_t j = first; j < end; j += stride) members.push_back(x + j);
  std::stable_sort(members.begin(), members.end(),
                   [](const float* a, const float* b) { return *a > *b; });
  for (std::size_t i = quota; i < members.size(); ++i)
    *members[i] = -std::numeric_limits<float>::infinity();
}
