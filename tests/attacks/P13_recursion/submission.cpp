// attack: calls itself until the stack ends
// challenge: fused_softmax_topk
// cases: basic
// expect: RE
#include "bare.h"

static int deeper(volatile char* above) {
  volatile char here[4096];
  here[0] = above[0];
  return deeper(here) + here[0];
}

int attack(assay_ctx*) {
  volatile char first = 0;
  witness();
  return deeper(&first);
}
