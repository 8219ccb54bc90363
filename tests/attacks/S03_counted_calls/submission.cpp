// attack: computes the first two calls, when a harness still checks, and nothing after
// challenge: each
// cases: one-timed
// expect: WA
// fast: fused_softmax_topk layer_norm_backward
#include "target.h"

int attack(Call& call) {
  static int calls = 0;
  return calls++ < 2 ? call.honest() : ASSAY_OK;
}
