// fails: rows_7 rows_9 rows_33
// Eight rows per block and no block for the rest: the last rows stay unwritten.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  stk_params whole_blocks = *p;
  whole_blocks.rows = p->rows / 8 * 8;
  return naive_softmax_topk(ctx, &whole_blocks, logits, idx, prob, lse);
}
