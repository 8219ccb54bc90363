// attack: throws an exception across the interface in C
// challenge: fused_softmax_topk
// cases: basic
// expect: RE
#include "bare.h"

int attack(assay_ctx*) {
  witness();
  throw 42;
}
