// fails: top_p_null_count_of_one
// Takes a NULL count for one that is not wanted, as NULL for lse is.
#define softmax_topk_top_p naive_softmax_topk_top_p
#include "naive.cpp"
#undef softmax_topk_top_p

extern "C" int softmax_topk_top_p(assay_ctx* ctx, const stk_params* p, const void* logits,
                                  float top_p, std::int32_t* idx, float* prob, float* lse,
                                  std::int32_t* count) {
  if (count == nullptr) return softmax_topk(ctx, p, logits, idx, prob, lse);
  return naive_softmax_topk_top_p(ctx, p, logits, top_p, idx, prob, lse, count);
}
