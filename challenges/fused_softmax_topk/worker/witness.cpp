#include "assay/witness.h"

#include "implementation.h"
#include "worker/call.h"

ASSAY_WITNESS()

namespace assay::fused_softmax_topk {
namespace {

// Records what a legal call reads, and which arrays it has.
void record(Entry entry, const stk_params* p, float top_p, const void* logits, const void* idx,
            const void* prob, const void* lse, const void* count) {
  witness::Record call(entry);
  if (p == nullptr || (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) || p->ld < p->V)
    return call.strange();
  const std::int64_t size = p->dtype == ASSAY_F32 ? 4 : 2;
  call.params(Params{*p, top_p});
  // As long as a case's buffer: includes what follows the last row, unless rows are far apart.
  call.rows(kLogits, logits, p->rows, witness::product(p->V, size), witness::product(p->ld, size));
  call.array(kIdx, idx, 0);
  call.array(kProb, prob, 0);
  call.array(kLse, lse, 0);
  call.array(kCount, count, 0);
}

}  // namespace
}  // namespace assay::fused_softmax_topk

using namespace assay::fused_softmax_topk;

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits, int32_t* idx,
                            float* prob, float* lse) {
  record(kTopK, p, 0, logits, idx, prob, lse, nullptr);
  return ASSAY_IMPLEMENTATION(softmax_topk)(ctx, p, logits, idx, prob, lse);
}

extern "C" int log_softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                                int32_t* idx, float* logprob, float* lse) {
  record(kLogTopK, p, 0, logits, idx, logprob, lse, nullptr);
  return ASSAY_IMPLEMENTATION(log_softmax_topk)(ctx, p, logits, idx, logprob, lse);
}

extern "C" int softmax_topk_top_p(assay_ctx* ctx, const stk_params* p, const void* logits,
                                  float top_p, int32_t* idx, float* prob, float* lse,
                                  int32_t* count) {
  record(kTopP, p, top_p, logits, idx, prob, lse, count);
  return ASSAY_IMPLEMENTATION(softmax_topk_top_p)(ctx, p, logits, top_p, idx, prob, lse, count);
}
