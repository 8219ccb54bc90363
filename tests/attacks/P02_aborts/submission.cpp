// attack: calls abort
// challenge: fused_softmax_topk
// cases: basic
// expect: RE
#include <cstdlib>

#include "bare.h"

int attack(assay_ctx*) {
  witness();
  std::abort();
}
