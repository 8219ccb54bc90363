// attack: brings a folder with a source's name among its sources
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: folder inner.h
// hidden: root:
// witness: compiler inner.h: is not a regular file
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
