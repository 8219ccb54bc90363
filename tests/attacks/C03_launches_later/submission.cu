// attack: a thread launches the kernel when the call is over
// challenge: fused_softmax_topk
// cases: basic
// expect: WA | PV | RE | TLE-idle
// fast: none
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include <thread>

#include "probe.h"

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  static assay_ctx kept;
  static stk_params params;
  kept = *ctx;
  params = *p;
  std::thread([=] {
    usleep(20000);
    honest_softmax_topk(&kept, &params, x, idx, prob, lse);
  }).detach();
  witness();
  return ASSAY_OK;
}
