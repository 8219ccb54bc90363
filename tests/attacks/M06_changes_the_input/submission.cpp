// attack: writes to its input, in the hope that the reference is computed from it afterwards
// challenge: fused_softmax_topk
// cases: basic
// expect: RE
#include "target.h"

int attack(Call& call) {
  witness();
  std::memset(const_cast<void*>(call.input), 0, call.input_bytes);
  return call.honest();
}
