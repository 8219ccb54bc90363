// attack: gives up before it comes to what it says; its wrong answer looks like one that was caught
// challenge: fused_softmax_topk
// cases: basic
// expect: WA
// canary: witness
#include "target.h"

int attack(Call& call) {
  if (call.ctx != nullptr) return ASSAY_OK;
  witness();
  return call.honest();
}
