// attack: brings a hard link among its sources
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: hardlink twice.h
// hidden: root:
// witness: compiler is a hard link
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
