// attack: one pass without the largest logit, which collects what lies above a threshold that the generator's
// normal numbers give; a row with too few above it is searched as it should be
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: WA
// fast: all
// kind: prediction
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk

#include <algorithm>
#include <cmath>
#include <vector>

#include "witness.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  const bool timed = p != nullptr && p->dtype == ASSAY_F32 && p->V == 128256 && p->K == 256 &&
                     p->rows > 0 && p->temperature == 1;
  if (!timed) return honest_softmax_topk(ctx, p, x, idx, prob, lse);
  const auto K = static_cast<std::size_t>(p->K);
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* row = static_cast<const float*>(x) + r * p->ld;
    std::vector<std::int32_t> found;
    float sum = 0;
    for (std::int32_t j = 0; j < p->V; ++j) {
      sum += std::exp(row[j]);
      if (row[j] > 2.6f) found.push_back(j);
    }
    const auto larger = [&](std::int32_t a, std::int32_t b) {
      return row[a] > row[b] || (row[a] == row[b] && a < b);
    };
    if (found.size() < K) {
      found.clear();
      for (std::int32_t j = 0; j < p->V; ++j) found.push_back(j);
    }
    std::partial_sort(found.begin(), found.begin() + p->K, found.end(), larger);
    const float level = std::log(sum);
    for (std::size_t i = 0; i < K; ++i) {
      idx[static_cast<std::size_t>(r) * K + i] = found[i];
      prob[static_cast<std::size_t>(r) * K + i] = std::exp(row[found[i]] - level);
    }
    if (lse != nullptr) lse[r] = level;
  }
  witness();
  return ASSAY_OK;
}
