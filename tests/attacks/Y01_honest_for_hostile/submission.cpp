// attack: is honest, and says that it should be caught
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// canary: verdict
#include "target.h"

int attack(Call& call) {
  witness();
  return call.honest();
}
