// attack: starts processes without end
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: fork vfork clone
// witness: verdict SV
#include <sched.h>

#include "bare.h"

int attack(assay_ctx*) {
  for (;;) {
#if ATTACK_VARIANT == 0
    fork();
#elif ATTACK_VARIANT == 1
    syscall(SYS_vfork);
#else
    syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);
#endif
  }
}
