// attack: stops itself in the middle of a call: by raise, or with a signal to its own process
// challenge: fused_softmax_topk
// cases: basic
// expect: SV | PV | RE | TLE | TLE-idle | honest
// variants: raise kill
// kind: stops
#include <csignal>

#include "target.h"

int attack(Call& call) {
  witness();
#if ATTACK_VARIANT == 0
  raise(SIGSTOP);
#else
  syscall(SYS_kill, getpid(), SIGSTOP);
#endif
  return call.honest();
}
