// attack: a thread holds the lock of the allocator behind ctx->alloc: what the harness asks for between
// calls then waits for the attack, which computes meanwhile
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest | PV | WA | RE | TLE | TLE-idle
// dimension: performance
// deadline: 300
#include <pthread.h>

#include <thread>

#include "allocator.h"
#include "target.h"

int attack(Call& call) {
  static bool started = false;
  if (!started) {
    const Allocator allocator = find_allocator(call.ctx);
    if (allocator.base == nullptr) return call.honest();
    auto* lock = static_cast<pthread_mutex_t*>(allocator.lock());
    std::thread([lock] {
      for (;;) {
        pthread_mutex_lock(lock);
        witness();
        usleep(200000);
        pthread_mutex_unlock(lock);
        usleep(1);
      }
    }).detach();
    started = true;
  }
  return call.honest();
}
