// attack: the worker's first thread ends, and another one answers for it: the kernel then says nothing of the
// process's memory any more
// challenge: fused_softmax_topk
// cases: basic wide rows_9
// expect: RE | PV | TLE-idle
// variants: answers silent
// kind: stops
#include <thread>

#include "target.h"

int attack(Call&) {
  std::thread([] {
    usleep(20000);  // the first thread is gone by then
    const char token = 1;
    while (ATTACK_VARIANT == 0 && write(6, &token, sizeof token) == sizeof token) pause();
    for (;;) pause();
  }).detach();
  witness();
  syscall(SYS_exit, 0);
  return ASSAY_OK;
}
