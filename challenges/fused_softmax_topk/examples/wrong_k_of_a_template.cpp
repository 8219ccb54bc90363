// fails: k_gt_32 k_100 k_257 k_1000
// The launcher has instances for K = 1, 8, 16, 32, 64, 128, 256 and 512 and takes the next smaller one.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  std::int32_t instance = 0;
  for (const std::int32_t k : {1, 8, 16, 32, 64, 128, 256, 512}) {
    if (k <= p->K) instance = k;
  }
  for (std::int64_t r = 0; r < p->rows; ++r) {
    stk_params row = *p;
    row.rows = 1;
    row.K = instance;
    const std::size_t width = p->dtype == ASSAY_F32 ? 4 : 2;
    const auto* x = static_cast<const char*>(logits) + static_cast<std::size_t>(r * p->ld) * width;
    const int status = naive_softmax_topk(ctx, &row, x, idx + r * p->K, prob + r * p->K,
                                          lse != nullptr ? lse + r : nullptr);
    if (status != ASSAY_OK) return status;
  }
  return ASSAY_OK;
}
