// attack: a thread starts another one as vfork starts a process, so that it waits in the kernel, where no signal
// stops it
// challenge: fused_softmax_topk
// cases: basic wide rows_9
// expect: SV | PV | RE
// kind: stops
#include <pthread.h>
#include <sched.h>

#include "target.h"

alignas(16) static char stack[1 << 16];

static int sleep_for_ever(void*) {
  for (;;) pause();
}

static void* wait_for_it(void*) {
  constexpr int kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_VFORK |
                         CLONE_THREAD | CLONE_SYSVSEM;
  witness();
  clone(&sleep_for_ever, stack + sizeof stack, kFlags, nullptr);
  return nullptr;
}

int attack(Call& call) {
  static pthread_t thread;
  static bool started = false;
  if (!started) started = pthread_create(&thread, nullptr, &wait_for_it, nullptr) == 0;
  usleep(2000);
  return call.honest();
}
