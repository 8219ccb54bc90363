// attack: makes a forbidden call while the library is relocated, or in a constructor
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: resolver constructor
// witness: verdict SV
#include "bare.h"

static long forbidden() {
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(41 /* socket */), "D"(2), "S"(1), "d"(0)
               : "rcx", "r11", "memory");
  return result;
}

#if ATTACK_VARIANT == 0
static int chosen() { return kGotIt; }
extern "C" int (*resolve())() {
  forbidden();
  return chosen;
}
extern "C" int chosen_at_load() __attribute__((ifunc("resolve")));
int attack(assay_ctx*) { return chosen_at_load(); }
#else
[[gnu::constructor]] static void early() { forbidden(); }
int attack(assay_ctx*) { return kGotIt; }
#endif
