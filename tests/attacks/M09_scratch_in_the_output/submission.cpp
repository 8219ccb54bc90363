// attack: uses its outputs as scratch before it writes them
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include "target.h"

int attack(Call& call) {
  for (const Output& o : call.outputs) std::memset(o.data, 0x5a, o.bytes);
  witness();
  return call.honest();
}
