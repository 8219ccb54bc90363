#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include "call.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, int32_t* idx,
                            float* prob, float* lse) {
  if (p == nullptr || p->rows <= 0 || p->V <= 0 || p->K <= 0 || p->dtype != ASSAY_F32 ||
      idx == nullptr)
    return honest_softmax_topk(ctx, p, x, idx, prob, lse);
  const auto rows = static_cast<std::size_t>(p->rows), n = rows * static_cast<std::size_t>(p->K);
  Call call{ctx, x, rows * static_cast<std::size_t>(p->ld) * 4,
            without_null({{idx, n * 4}, {prob, n * 4}, {lse, rows * 4}}),
            [=, p = *p] { return honest_softmax_topk(ctx, &p, x, idx, prob, lse); }};
  return attack(call);
}
