// attack: costs the harness the full time limit in case after case
// challenge: fused_softmax_topk
// cases: core
// expect: TLE | TLE-idle
// fast: none
#include "bare.h"

int attack(assay_ctx*) {
  witness();
  for (volatile unsigned n = 0;; n = n + 1) {
  }
}
