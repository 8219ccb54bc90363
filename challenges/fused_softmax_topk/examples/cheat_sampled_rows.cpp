// caught: launch_many_rows
// Beyond a thousand rows only every second one is computed and its neighbour gets a copy: a check
// of a few rows would have to be lucky.
#include <cstring>
#include <vector>

#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  const int status = naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  if (status != ASSAY_OK || p->rows <= 1000) return status;
  for (std::int64_t r = 1; r < p->rows; r += 2) {
    std::copy_n(idx + (r - 1) * p->K, p->K, idx + r * p->K);
    std::copy_n(prob + (r - 1) * p->K, p->K, prob + r * p->K);
    if (lse != nullptr) lse[r] = lse[r - 1];
  }
  return status;
}
