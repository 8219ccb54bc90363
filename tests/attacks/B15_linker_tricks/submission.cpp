// attack: asks the linker for an executable stack, or for relocations in its code
// challenge: fused_softmax_topk
// cases: basic
// expect: LE | CE | honest
// variants: stack text
#include "target.h"

int attack(Call& call) {
  witness();
  return call.honest();
}

#if ATTACK_VARIANT == 0
asm(".section .note.GNU-stack,\"x\",@progbits\n.text\n");
#else
asm(".text\n.globl moved\nmoved: .quad moved\n");
#endif
