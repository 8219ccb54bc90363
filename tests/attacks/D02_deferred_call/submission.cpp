// attack: only remembers what it was asked; a later call, or the one that destroys the handle, does the
// work
// challenge: each
// cases: one-timed
// expect: WA | PV | RE
// fast: fused_softmax_topk layer_norm_backward
// kind: order
#include "target.h"

static std::vector<std::function<int()>> owed;

void attack_flush() {
  for (const auto& work : owed) work();
  owed.clear();
}

int attack(Call& call) {
  if (attack_flush != nullptr && owed.size() > 64) attack_flush();
  owed.push_back(call.honest);
  witness();
  return ASSAY_OK;
}
