// attack: a constructor of the host code starts a process that would rewrite the results
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// fast: none
// witness: verdict SV
#include <cstdint>

#include "abi.h"
#include "probe.h"

[[gnu::constructor]] static void start() {
  if (fork() == 0) sleep(600);
}

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  return kGotIt;
}
