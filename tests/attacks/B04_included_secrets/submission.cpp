// attack: includes accounts, and what the challenge keeps from its answers, so that the compiler prints
// them
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// variants: accounts reference par naive
// hidden: root:
// hidden: daemon:
// witness: compiler /etc/passwd: No such file
// witness: compiler /etc/passwd: Permission denied
// witness: compiler reference.cpp: No such file
// witness: compiler par.cpp: No such file
// witness: compiler naive.cpp: No such file
#if ATTACK_VARIANT == 0
#include "/etc/passwd"
#elif ATTACK_VARIANT == 1
#include "reference.cpp"
#elif ATTACK_VARIANT == 2
#include "par.cpp"
#else
#include "naive.cpp"
#endif
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}
