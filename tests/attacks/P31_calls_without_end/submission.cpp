// attack: never replies, while its threads make calls that the harness watches, one after another, so that
// the harness never finds nothing to do
// challenge: fused_softmax_topk
// cases: one-resource
// expect: TLE | TLE-idle
// kind: stops
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "bare.h"

int attack(assay_ctx*) {
  for (int i = 0; i < 7; ++i) {
    std::thread([] {
      for (;;) syscall(SYS_brk, 0);
    }).detach();
  }
  witness();
  for (;;) syscall(SYS_brk, 0);
}
