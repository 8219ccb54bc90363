// attack: brings a symbolic link to a file of the machine among its sources
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: symlink passwd.h /etc/passwd
// hidden: root:
// witness: compiler is a symbolic link
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
