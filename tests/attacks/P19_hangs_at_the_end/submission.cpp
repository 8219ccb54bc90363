// attack: never finishes when the process ends
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <cstdlib>

#include "target.h"

[[gnu::destructor]] static void stay() {
  for (;;) pause();
}

int attack(Call& call) {
  static const int once = std::atexit([] {
    for (;;) pause();
  });
  if (once != 0) return kGotIt;
  witness();
  return call.honest();
}
