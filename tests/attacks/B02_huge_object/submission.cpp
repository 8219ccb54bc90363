// attack: asks for an object of gigabytes
// challenge: fused_softmax_topk
// cases: basic
// expect: CE-limit | CE | LE
// fast: none
// deadline: 300
// witness: verdict CE-limit
// witness: compiler File size limit exceeded
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}

int huge[1u << 29] = {1};
