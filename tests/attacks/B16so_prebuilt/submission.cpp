// attack: brings a prebuilt lib.so of its own
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: file lib.so
// witness: compiler lib.so: answers are sources
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
