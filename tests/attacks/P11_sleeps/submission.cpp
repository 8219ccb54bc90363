// attack: sleeps for ever
// challenge: fused_softmax_topk
// cases: basic
// expect: TLE-idle
#include "bare.h"

int attack(assay_ctx*) {
  witness();
  for (;;) pause();
}
