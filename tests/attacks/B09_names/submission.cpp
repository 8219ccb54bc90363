// attack: brings a file with a blank, a newline or foreign bytes in its name
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: file a\sb.cpp
// with: file c\nd.cpp
// with: file e\xff.cpp
// witness: compiler names consist of
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
