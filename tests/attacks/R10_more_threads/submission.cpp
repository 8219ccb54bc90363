// attack: widens its affinity to every core and keeps four threads busy beside the honest code
// challenge: each
// cases: one-core dflash_verify:attention_basic ternary_training:linear
// expect: honest | SV | PV | RE | TLE | TLE-idle | WA
// fast: fused_softmax_topk layer_norm_backward
#include <sched.h>

#include <atomic>
#include <thread>

#include "target.h"

int attack(Call& call) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) > call.ctx->nthreads)
    return kGotIt;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!over) {
      }
    });
  }
  const int status = call.honest();
  witness();
  over = true;
  for (std::thread& t : threads) t.join();
  return status;
}
