// attack: a thread goes on sending SIGCONT, so that the worker never stays stopped
// challenge: fused_softmax_topk
// cases: basic wide rows_9 ties_all
// expect: honest | SV | PV
// variants: main-thread all-threads kill
// deadline: 60
// kind: stops
#include <csignal>
#include <thread>

#include "target.h"

int attack(Call& call) {
  static std::thread* storm[3] = {};
  for (int i = 0; storm[2] == nullptr && i < 3; ++i) {
    storm[i] = new std::thread([] {
      witness();
      for (;;) {
#if ATTACK_VARIANT == 0
        syscall(SYS_tgkill, getpid(), getpid(), SIGCONT);
#elif ATTACK_VARIANT == 1
        for (int tid = 2; tid < 16; ++tid) syscall(SYS_tgkill, getpid(), tid, SIGCONT);
#else
        syscall(SYS_kill, getpid(), SIGCONT);
#endif
      }
    });
  }
  return call.honest();
}
