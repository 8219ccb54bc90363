// attack: takes the lock of the allocator behind ctx->alloc and never gives it back
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: PV | TLE | TLE-idle | RE
// deadline: 120
// fast: none
#include <pthread.h>

#include "allocator.h"
#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  const Allocator allocator = find_allocator(call.ctx);
  if (allocator.base == nullptr) return status;
  pthread_mutex_lock(static_cast<pthread_mutex_t*>(allocator.lock()));
  witness();
  return status;
}
