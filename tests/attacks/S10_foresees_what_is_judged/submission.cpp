// attack: foresees that a check looks at the beginning and the end of each output, and leaves
// the middle as it was
// challenge: each
// cases: one-core dflash_verify:attention_basic ternary_training:linear
// expect: WA
// dimension: correctness
// twin: self
// kind: prediction
// fast: fused_softmax_topk layer_norm_backward kv_cache
#include "target.h"

int attack(Call& call) {
  const std::vector<char> before = saved(call);
  const int status = call.honest();
  if (ATTACK_IS_TWIN != 0 || status != ASSAY_OK) return status;
  std::size_t first = 0;
  for (const Output& o : call.outputs) {
    const std::size_t words = o.bytes / 4, from = words / 3 * 4, to = (words - words / 3) * 4;
    std::memcpy(static_cast<char*>(o.data) + from, before.data() + first + from, to - from);
    first += o.bytes;
  }
  witness();
  return status;
}
