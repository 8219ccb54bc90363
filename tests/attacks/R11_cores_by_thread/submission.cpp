// attack: each thread sets its own affinity to one core of its choice, beyond those that it was given
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | SV | PV
#include <sched.h>

#include <atomic>
#include <thread>

#include "target.h"

int attack(Call& call) {
  cpu_set_t given;
  sched_getaffinity(0, sizeof given, &given);
  std::atomic<int> beyond{0};
  std::vector<std::thread> threads;
  for (int core = 0; core < 64 && threads.size() < 8; ++core) {
    if (core < CPU_SETSIZE && CPU_ISSET(core, &given)) continue;
    threads.emplace_back([&beyond, core] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      if (sched_setaffinity(0, sizeof one, &one) == 0 && sched_getcpu() == core) ++beyond;
    });
  }
  for (std::thread& t : threads) t.join();
  witness();
  return beyond > 0 || CPU_COUNT(&given) > call.ctx->nthreads ? kGotIt : call.honest();
}
