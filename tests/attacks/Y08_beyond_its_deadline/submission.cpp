// attack: takes longer than its row may
// challenge: fused_softmax_topk
// cases: basic
// expect: TLE-idle
// deadline: 1
// canary: hang
#include "bare.h"

int attack(assay_ctx*) {
  witness();
  for (;;) pause();
}
