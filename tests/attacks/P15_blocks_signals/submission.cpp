// attack: blocks every signal, ignores the rest, and asks for alarms
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | SV
// variants: block alarm
#include <sys/time.h>

#include <csignal>

#include "target.h"

int attack(Call& call) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
#if ATTACK_VARIANT == 1
  const itimerval soon{{0, 1000}, {0, 1000}};
  if (setitimer(ITIMER_REAL, &soon, nullptr) == 0) return kGotIt;
#endif
  witness();
  return call.honest();
}
