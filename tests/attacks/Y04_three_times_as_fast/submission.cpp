// attack: does honest work, of which its twin does three times as much
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest
// dimension: performance
// twin: self
// canary: speed
#include "target.h"

int attack(Call& call) {
  // Many calls, so that neither is fast enough for points, which another canary is after.
  constexpr int kCalls = ATTACK_IS_TWIN != 0 ? 12 : 4;
  int status = ASSAY_OK;
  for (int i = 0; i < kCalls && status == ASSAY_OK; ++i) status = call.honest();
  witness();
  return status;
}
