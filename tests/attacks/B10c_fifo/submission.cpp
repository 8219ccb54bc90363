// attack: brings a pipe among its sources
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: fifo pipe.h
// hidden: root:
// witness: compiler pipe.h: is not a regular file
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
