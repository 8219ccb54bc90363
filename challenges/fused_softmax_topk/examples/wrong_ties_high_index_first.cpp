// fails: ties_all ties_boundary zero_signs
// Columns are scanned from the end, so equal values come in descending order of index and the wrong ones
// are kept at the boundary.
#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

#include <vector>

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob) || p->dtype != ASSAY_F32 || p->rows * p->V == 0 || p->K == 0) {
    return naive_softmax_topk(ctx, p, logits, idx, prob, lse);
  }
  std::vector<float> reversed(static_cast<std::size_t>(p->rows * p->ld));
  for (std::int64_t r = 0; r < p->rows; ++r) {
    const float* x = static_cast<const float*>(logits) + r * p->ld;
    for (std::int64_t j = 0; j < p->V; ++j)
      reversed[static_cast<std::size_t>(r * p->ld + j)] = x[p->V - 1 - j];
  }
  const int status = naive_softmax_topk(ctx, p, reversed.data(), idx, prob, lse);
  for (std::int64_t i = 0; i < p->rows * p->K; ++i) {
    if (idx[i] >= 0) idx[i] = static_cast<std::int32_t>(p->V - 1 - idx[i]);
  }
  return status;
}
