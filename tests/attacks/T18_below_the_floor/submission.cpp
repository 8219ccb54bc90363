// attack: returns the outputs of the warm-up at once: a time that no memory could reach
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: WA
#include "target.h"

int attack(Call& call) {
  static int calls = 0;
  if (calls++ == 0) return call.honest();
  witness();
  return ASSAY_OK;
}
