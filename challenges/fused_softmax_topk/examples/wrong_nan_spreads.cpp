// fails: nan_row_between
// The flag 'this row is poisoned' is not reset between the rows of a block of 8.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  bool poisoned = false;
  for (std::int64_t r = 0; status == ASSAY_OK && p->K > 0 && r < p->rows; ++r) {
    if (r % 8 == 0) poisoned = false;
    poisoned = poisoned || std::isnan(prob[r * p->K]);
    for (std::int64_t i = r * p->K; poisoned && i < (r + 1) * p->K; ++i) {
      idx[i] = -1;
      prob[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  return status;
}
