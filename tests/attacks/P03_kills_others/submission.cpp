// attack: sends SIGKILL to its group, to everybody, to pid 1, to its parent
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: group all init parent
// witness: verdict SV
#include <csignal>

#include "bare.h"

int attack(assay_ctx*) {
  const int whom[] = {0, -1, 1, getppid()};
  kill(whom[ATTACK_VARIANT], SIGKILL);
  return kGotIt;
}
