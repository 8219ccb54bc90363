// attack: raises its own limits
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <sys/resource.h>

#include "target.h"

int attack(Call& call) {
  for (int which = 0; which < RLIM_NLIMITS; ++which) {
    const rlimit endless{RLIM_INFINITY, RLIM_INFINITY};
    rlimit now{};
    if (getrlimit(static_cast<__rlimit_resource>(which), &now) == 0 &&
        now.rlim_max != RLIM_INFINITY &&
        setrlimit(static_cast<__rlimit_resource>(which), &endless) == 0)
      return kGotIt;
  }
  witness();
  return call.honest();
}
