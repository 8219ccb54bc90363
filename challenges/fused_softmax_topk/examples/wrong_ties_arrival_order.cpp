// fails: ties_boundary ties_all zero_signs
// A selection by threshold: everything above the K-th value, then equal values in the order in
// which threads happen to reserve slots. The output is sorted afterwards, so only membership gives
// it away.
#include <cstring>
#include <vector>

#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

namespace {

struct Before {
  const float* x;
  bool operator()(std::int32_t a, std::int32_t b) const {
    return x[a] > x[b] || (x[a] == x[b] && a < b);
  }
};

std::vector<std::int32_t> select(const float* x, const stk_params& p) {
  const auto n = static_cast<std::size_t>(std::min<std::int64_t>(p.K, p.V));
  std::vector<float> values(x, x + p.V);
  std::nth_element(values.begin(), values.begin() + (n - 1), values.end(), std::greater<>());
  const float threshold = values[n - 1];
  std::vector<std::int32_t> winners;
  for (std::int32_t j = 0; j < p.V; ++j) {
    if (x[j] > threshold) winners.push_back(j);
  }
  for (std::int64_t warp = 31; warp >= 0; --warp) {
    for (std::int64_t j = warp; j < p.V && winners.size() < n; j += 32) {
      if (x[j] == threshold) winners.push_back(static_cast<std::int32_t>(j));
    }
  }
  std::sort(winners.begin(), winners.end(), Before{x});
  return winners;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  if (status != ASSAY_OK || p->dtype != ASSAY_F32 || p->V == 0) return status;
  for (std::int64_t r = 0; r < p->rows * (p->K > 0); ++r) {
    const float* x = static_cast<const float*>(logits) + r * p->ld;
    std::int32_t* row = idx + r * p->K;
    float* row_prob = prob + r * p->K;
    if (row[0] < 0 || !(row_prob[0] > 0)) continue;  // poisoned or masked
    const float best = x[row[0]], best_prob = row_prob[0];
    const std::vector<std::int32_t> winners = select(x, *p);
    for (std::int32_t k = 0; k < p->K; ++k) {
      const bool used = k < static_cast<std::int32_t>(winners.size());
      row[k] = used ? winners[k] : -1;
      row_prob[k] = used ? best_prob * std::exp((x[winners[k]] - best) / p->temperature) : 0.0f;
    }
  }
  return status;
}
