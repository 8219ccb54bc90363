// attack: brings its own abi.h, with which the harness would be compiled
// challenge: fused_softmax_topk
// cases: basic
// expect: CE | honest | LE
// with: file abi.h
#include "target.h"

int attack(Call& call) {
  witness();
  return call.honest();
}
