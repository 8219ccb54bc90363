// fails: launch_one_row long_tail_sum
// One block per row strides over at most 2^20 columns: the loop's trip count is a constant.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  stk_params part = *p;
  part.V = std::min<std::int64_t>(p->V, 1 << 20);
  return naive_softmax_topk(ctx, &part, logits, idx, prob, lse);
}
