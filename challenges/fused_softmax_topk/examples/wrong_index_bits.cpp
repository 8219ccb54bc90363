// fails: launch_one_row
// Value and column are packed into one 64-bit key, the column in the low 20 bits: enough for every
// vocabulary in use, not for a row of four million.
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
  constexpr std::int32_t kMask = (1 << 20) - 1;
  std::vector<std::int32_t> order(p.V);
  std::iota(order.begin(), order.end(), 0);
  const auto n = std::min<std::int64_t>(p.K, p.V);
  std::partial_sort(order.begin(), order.begin() + n, order.end(), Before{x});
  order.resize(n);
  for (std::int32_t& j : order) j &= kMask;
  return order;
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
