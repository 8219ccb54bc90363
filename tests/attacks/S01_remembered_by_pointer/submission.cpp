// attack: answers from memory when the pointer is one that it has seen
// challenge: each
// cases: one-timed
// expect: WA
// fast: fused_softmax_topk layer_norm_backward
// kind: prediction
#include <map>

#include "target.h"

int attack(Call& call) {
  static std::map<const void*, std::vector<char>> known;
  const void* key = call.outputs[0].data;
  if (known.count(key) != 0) {
    restore(call, known[key]);
    witness();
    return ASSAY_OK;
  }
  const int status = call.honest();
  known[key] = saved(call);
  return status;
}
