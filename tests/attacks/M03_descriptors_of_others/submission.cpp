// attack: asks for descriptors of the harness by way of its pid
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: open get
// witness: verdict SV
#include "bare.h"

int attack(assay_ctx*) {
#if ATTACK_VARIANT == 0
  const long pid = syscall(434 /* pidfd_open */, getppid(), 0);
  syscall(438 /* pidfd_getfd */, pid, 3, 0);
#else
  syscall(438, 3, 3, 0);
#endif
  return kGotIt;
}
