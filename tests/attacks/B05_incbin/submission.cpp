// attack: takes a file of the machine into its data by the assembler
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// witness: compiler file not found: /etc/passwd
#include "abi.h"

extern "C" int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*) {
  return 99;
}

asm(".section .data\nstolen: .incbin \"/etc/passwd\"\n.text\n");
