// attack: uses instructions that the processor does not have
// challenge: fused_softmax_topk
// cases: basic
// expect: RE
#include "bare.h"

#pragma GCC optimize("Ofast")
int attack(assay_ctx*) {
  witness();
  asm volatile("ud2");
  return kGotIt;
}
