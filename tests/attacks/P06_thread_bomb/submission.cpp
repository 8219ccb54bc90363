// attack: starts threads until none can be had
// challenge: fused_softmax_topk
// cases: basic
// expect: RE | honest | MLE
#include <thread>

#include "target.h"

int attack(Call& call) {
  try {
    for (int i = 0; i < 100000; ++i) std::thread([] { pause(); }).detach();
  } catch (const std::exception&) {
    witness();
    return call.honest();
  }
  return kGotIt;
}
