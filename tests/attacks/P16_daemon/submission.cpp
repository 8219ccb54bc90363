// attack: leaves its session, so that a process of it would outlive the cell
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: setsid daemon
// witness: verdict SV
#include "bare.h"

int attack(assay_ctx*) {
#if ATTACK_VARIANT == 0
  setsid();
#else
  if (fork() == 0) {
    setsid();
    if (fork() == 0) sleep(600);
  }
#endif
  return kGotIt;
}
