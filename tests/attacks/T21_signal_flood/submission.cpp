// attack: threads flood each other with signals while the worker is to be stopped
// challenge: fused_softmax_topk
// cases: basic rows_9 ties_all
// expect: honest | SV | PV | RE | TLE
// deadline: 60
// kind: stops
#include <csignal>
#include <thread>

#include "target.h"

int attack(Call& call) {
  static bool started = false;
  if (!started) {
    std::signal(SIGUSR1, [](int) {});
    for (int i = 0; i < 3; ++i) {
      std::thread([] {
        for (;;) {
          for (int tid = 2; tid < 8; ++tid) syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
          witness();
        }
      }).detach();
    }
    started = true;
  }
  return call.honest();
}
