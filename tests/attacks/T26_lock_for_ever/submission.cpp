// attack: takes the lock behind ctx->priv and never gives it back
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: PV | TLE | TLE-idle | RE
// deadline: 120
// fast: none
#include <pthread.h>

#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  pthread_mutex_lock(static_cast<pthread_mutex_t*>(call.ctx->priv));
  witness();
  return status;
}
