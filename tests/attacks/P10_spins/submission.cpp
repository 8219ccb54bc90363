// attack: computes for ever
// challenge: fused_softmax_topk
// cases: basic
// expect: TLE | TLE-idle
#include "bare.h"

int attack(assay_ctx*) {
  witness();
  for (volatile unsigned n = 0;; n = n + 1) {
  }
}
