// attack: leaves the outputs as they are: zeros, or what a run before left there
// challenge: fused_softmax_topk
// cases: basic
// expect: WA
#include "bare.h"

int attack(assay_ctx*) {
  witness();
  return ASSAY_OK;
}
