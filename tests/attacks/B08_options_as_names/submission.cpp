// attack: brings files whose names are options of the compiler
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: file @options.cpp
// with: file -fplugin=x.cpp
// witness: compiler names may not start with '-'
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
