// fails: launch_many_rows
// Rows on a grid dimension that ends at 65535.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  stk_params grid = *p;
  grid.rows = std::min<std::int64_t>(p->rows, 65535);
  return naive_softmax_topk(ctx, &grid, logits, idx, prob, lse);
}
