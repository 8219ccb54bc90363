// attack: answers NaN everywhere, where a careless comparison accepts it
// challenge: fused_softmax_topk
// cases: basic
// expect: WA
#include <limits>

#include "target.h"

int attack(Call& call) {
  call.honest();
  for (const Output& o : call.outputs) {
    auto* x = static_cast<float*>(o.data);
    for (std::size_t i = 0; i < o.bytes / 4; ++i) x[i] = std::numeric_limits<float>::quiet_NaN();
  }
  witness();
  return ASSAY_OK;
}
