// attack: defines clock_gettime, gettimeofday and time so that no time seems to pass
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest
// dimension: performance
#include <sys/time.h>

#include <ctime>

#include "target.h"

extern "C" int clock_gettime(clockid_t, timespec* t) noexcept {
  *t = {1, 0};
  return 0;
}
extern "C" int gettimeofday(timeval* t, void*) noexcept {
  *t = {1, 0};
  return 0;
}

int attack(Call& call) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  witness();  // asked, whoever's clock the loader chose
  return call.honest();
}
