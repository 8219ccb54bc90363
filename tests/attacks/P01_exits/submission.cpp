// attack: ends the process in the middle of a call, as if all were well
// challenge: fused_softmax_topk
// cases: basic
// expect: RE
// variants: exit _exit quick_exit
#include <cstdlib>

#include "bare.h"

int attack(assay_ctx*) {
  witness();
#if ATTACK_VARIANT == 0
  std::exit(0);
#elif ATTACK_VARIANT == 1
  _exit(0);
#else
  std::quick_exit(0);
#endif
}
