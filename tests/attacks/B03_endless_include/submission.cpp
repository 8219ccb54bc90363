// attack: includes a file without end
// challenge: fused_softmax_topk
// cases: basic
// expect: CE | CE-limit
// witness: compiler /dev/zero
#include "/dev/zero"
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
