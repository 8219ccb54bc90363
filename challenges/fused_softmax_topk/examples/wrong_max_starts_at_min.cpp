// fails: shift_down
// The search for the maximum starts from numeric_limits<float>::min(), which is the smallest
// positive float: a row of very negative logits never gets its maximum.
#include <cstring>
#include <vector>

#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

namespace {

// Rows that have no finite maximum are left to the plain implementation.
bool skip(const float* x, std::int64_t V) {
  float max = -std::numeric_limits<float>::infinity();
  bool nan = false;
  for (std::int64_t j = 0; j < V; ++j) {
    max = std::max(max, x[j]);
    nan = nan || std::isnan(x[j]);
  }
  return nan || std::isinf(max);
}

struct Sum {
  float max;
  float sum;  // of exp((x - max) / T)
};

Sum sum(const float* x, const stk_params& p) {
  float max = std::numeric_limits<float>::min();
  for (std::int64_t j = 0; j < p.V; ++j) max = std::max(max, x[j]);
  double total = 0;
  for (std::int64_t j = 0; j < p.V; ++j) total += std::exp((x[j] - max) / p.temperature);
  return {max, static_cast<float>(total)};
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  if (status != ASSAY_OK || p->dtype != ASSAY_F32) return status;
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* x = static_cast<const float*>(logits) + r * p->ld;
    if (skip(x, p->V)) continue;
    const Sum s = sum(x, *p);
    if (lse != nullptr) lse[r] = s.max / p->temperature + std::log(s.sum);
    for (std::int32_t k = 0; k < std::min<std::int64_t>(p->K, p->V); ++k) {
      const float z = (x[idx[r * p->K + k]] - s.max) / p->temperature;
      prob[r * p->K + k] = std::exp(z - std::log(s.sum));
    }
  }
  return status;
}
