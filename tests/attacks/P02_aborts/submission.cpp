// attack: calls abort
// challenge: fused_softmax_topk
// cases: basic
// expect: RE
#include "bare.h"

#include <cstdlib>

int attack(assay_ctx*) { std::abort(); }
