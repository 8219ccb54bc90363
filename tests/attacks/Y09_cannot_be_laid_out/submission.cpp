// attack: brings what cannot be made, at which the harness of its row gives up
// challenge: fused_softmax_topk
// cases: basic
// expect: CE
// with: nothing
// canary: death
#include "target.h"

int attack(Call& call) {
  witness();
  return call.honest();
}
