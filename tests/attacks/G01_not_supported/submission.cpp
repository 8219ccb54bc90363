// attack: says of whatever is hard that it does not support it
// challenge: fused_softmax_topk
// cases: basic wide ties_all ties_boundary
// expect: NS | WA
// variants: large later
// dimension: correctness
#include "target.h"

int attack(Call& call) {
#if ATTACK_VARIANT == 0
  const bool refuses = call.outputs[0].bytes > 1024;
#else
  static int calls = 0;
  const bool refuses = ++calls > 1;
#endif
  if (!refuses) return call.honest();
  witness();
  return ASSAY_ENOTSUP;
}
