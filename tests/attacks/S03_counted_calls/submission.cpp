// attack: computes the first two calls, when a harness still checks, and nothing after
// challenge: each
// cases: one-timed
// expect: WA
// fast: fused_softmax_topk layer_norm_backward
// kind: order
#include "target.h"

int attack(Call& call) {
  static int calls = 0;
  if (calls++ < 2) return call.honest();
  witness();
  return ASSAY_OK;
}
