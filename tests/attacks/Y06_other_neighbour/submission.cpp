// attack: stands where its honest neighbour stood: as a neighbour it answers wrongly
// challenge: fused_softmax_topk
// cases: basic rows_9 ties_all
// expect: honest
// twin: self
// canary: neighbour
#include "target.h"

int attack(Call& call) {
  witness();
  const int status = call.honest();
  if (ATTACK_IS_TWIN != 0) std::memset(call.outputs[0].data, 0, call.outputs[0].bytes);
  return status;
}
