// attack: never finishes loading
// challenge: fused_softmax_topk
// cases: basic
// expect: LE | TLE | TLE-idle
// variants: asleep busy
// fast: none
#include "bare.h"

[[gnu::constructor]] static void stay() {
  witness();
  for (;;) {
#if ATTACK_VARIANT == 0
    pause();
#endif
  }
}

int attack(assay_ctx*) { return kGotIt; }
