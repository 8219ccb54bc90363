// attack: calls the kernel by the interfaces of other word sizes, which a filter may have forgotten
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: int80 x32
// witness: verdict SV
#include "bare.h"

int attack(assay_ctx*) {
#if ATTACK_VARIANT == 0
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(2 /* fork */) : "memory");
#else
  syscall(0x40000000 + 57 /* fork of x32 */);
#endif
  return kGotIt;
}
