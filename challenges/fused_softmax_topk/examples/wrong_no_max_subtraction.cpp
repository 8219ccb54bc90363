// fails: shift_up shift_down range_200
// exp of the logits as they are: overflows above 88, sums to 0 far below.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

namespace {

// Probabilities of the selected columns for a given log-sum-exp.
void rewrite(const stk_params& p, const float* x, float log_sum, const std::int32_t* idx,
             float* prob, float* lse) {
  for (std::int32_t k = 0; k < p.K; ++k) {
    if (idx[k] >= 0) prob[k] = std::exp(x[idx[k]] / p.temperature - log_sum);
  }
  if (lse != nullptr) *lse = log_sum;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob) || p->dtype != ASSAY_F32 || p->rows * p->V == 0 || p->K == 0) {
    return naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  }
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  for (std::int64_t r = 0; status == ASSAY_OK && r < p->rows; ++r) {
    const float* x = static_cast<const float*>(logits) + r * p->ld;
    const float t = p->temperature;
    float sum = 0;
    for (std::int64_t j = 0; j < p->V; ++j) sum += std::exp(x[j] / t);
    const float log_sum = std::log(sum);
    rewrite(*p, x, log_sum, idx + r * p->K, prob + r * p->K, lse != nullptr ? lse + r : nullptr);
  }
  return status;
}
