// attack: brings a prebuilt lib.o of its own
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: file lib.o
// witness: compiler of_the_library
#include "abi.h"

extern "C" int of_the_library();

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return of_the_library();
}
