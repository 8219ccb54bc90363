// attack: sets the processor to flush denormal numbers, and rounding upwards, and leaves it so
// challenge: fused_softmax_topk
// cases: basic range_200 long_tail_sum
// expect: honest
// variants: flush upwards
#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  const unsigned control = ATTACK_VARIANT == 0 ? 0x9fc0 : 0x1f80 | 0x4000;
  witness();
  asm volatile("ldmxcsr %0" ::"m"(control));
  return status;
}
