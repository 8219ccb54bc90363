// attack: switches floating-point traps on, and the direction flag and the stack of the x87, and leaves
// them so
// challenge: fused_softmax_topk
// cases: basic masked_topk all_masked
// expect: honest
#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  const unsigned control = 0x1f80 & ~0x200u;  // division by zero traps
  const unsigned short x87 = 0x340;
  witness();
  asm volatile("ldmxcsr %0\n\tfldcw %1\n\tfld1\n\tstd" ::"m"(control), "m"(x87));
  return status;
}
