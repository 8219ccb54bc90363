// attack: asks for better treatment: priority, real time, locked or huge pages
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "target.h"

int attack(Call& call) {
  sched_param first{1};
  if (sched_setscheduler(0, SCHED_FIFO, &first) == 0) return kGotIt;
  if (setpriority(PRIO_PROCESS, 0, -10) == 0) return kGotIt;
  if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0) return kGotIt;
  witness();
  return call.honest();
}
