// attack: does honest work, of which its twin does twice as much
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest
// dimension: performance
// twin: self
// canary: speed
#include "target.h"

int attack(Call& call) {
  if (ATTACK_IS_TWIN != 0) call.honest();
  witness();
  return call.honest();
}
