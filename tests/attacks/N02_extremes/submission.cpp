// attack: answers infinity, minus zero, or a number so large that a relative bound overflows
// challenge: fused_softmax_topk
// cases: basic
// expect: WA
// variants: infinity minus-zero huge
#include <limits>

#include "target.h"

int attack(Call& call) {
  const float value[] = {std::numeric_limits<float>::infinity(), -0.0f, 3e38f};
  call.honest();
  auto* x = static_cast<float*>(call.outputs[1].data);
  for (std::size_t i = 0; i < call.outputs[1].bytes / 4; ++i) x[i] = value[ATTACK_VARIANT];
  witness();
  return ASSAY_OK;
}
