// attack: includes itself without end
// challenge: fused_softmax_topk
// cases: basic
// expect: CE | CE-limit
// witness: compiler from /src/submission.cpp
#include "submission.cpp"

#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
