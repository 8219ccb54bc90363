// attack: raises SIGKILL, which is what the kernel does to who has too much memory
// challenge: fused_softmax_topk
// cases: basic
// expect: RE | SV
// tiers: namespaces
#include <csignal>

#include "bare.h"

int attack(assay_ctx*) {
  witness();
  raise(SIGKILL);
  return kGotIt;
}
