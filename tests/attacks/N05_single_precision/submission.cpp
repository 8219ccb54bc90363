// attack: sums in half the precision where a long row needs the whole
// challenge: fused_softmax_topk
// cases: long_tail_sum
// expect: WA
#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  auto* lse = static_cast<float*>(call.outputs.back().data);
  for (std::size_t i = 0; i < call.outputs.back().bytes / 4; ++i) lse[i] *= 1.0f + 1.0f / 256;
  witness();
  return status;
}
