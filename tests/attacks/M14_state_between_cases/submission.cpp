// attack: remembers that there was a case before, and answers wrongly from then on
// challenge: fused_softmax_topk
// cases: basic wide rows_9
// expect: WA
// kind: order
#include "target.h"

int attack(Call& call) {
  static int calls = 0;
  const int status = call.honest();
  if (calls++ > 0) {
    std::memset(call.outputs[0].data, 0, call.outputs[0].bytes);
    witness();
  }
  return status;
}
