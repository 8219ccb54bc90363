// attack: computes one call and lets its outputs serve the fourteen that follow
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: WA
#include "target.h"

int attack(Call& call) {
  static std::vector<char> kept;
  static int calls = 0;
  if (calls++ % 15 != 0) {
    restore(call, kept);
    witness();
    return ASSAY_OK;
  }
  const int status = call.honest();
  kept = saved(call);
  return status;
}
