// attack: ends the process with status 0 when the library is loaded
// challenge: fused_softmax_topk
// cases: basic
// expect: LE
#include "bare.h"

[[gnu::constructor]] static void leave() {
  witness();
  _exit(0);
}

int attack(assay_ctx*) { return kGotIt; }
