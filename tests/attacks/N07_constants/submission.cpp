// attack: answers zeros, or the mean of all answers, which a loose tolerance accepts
// challenge: fused_softmax_topk
// cases: wide
// expect: WA
// variants: zeros mean
#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  auto* x = static_cast<float*>(call.outputs[1].data);
  double sum = 0;
  const std::size_t n = call.outputs[1].bytes / 4;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  for (std::size_t i = 0; i < n; ++i)
    x[i] = ATTACK_VARIANT == 0 ? 0 : static_cast<float>(sum / static_cast<double>(n));
  witness();
  return status;
}
