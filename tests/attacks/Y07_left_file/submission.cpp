// attack: leaves a file behind, by the hand of the suite: a sandboxed submission could not
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
// with: left canary
// canary: leftovers
#include "target.h"

int attack(Call& call) {
  witness();
  return call.honest();
}
