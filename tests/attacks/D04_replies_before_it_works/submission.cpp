// attack: replies first and works after: a thread begins when the call is over; its twin waits
// for the same thread
// challenge: each
// cases: one-core dflash_verify:attention_basic ternary_training:linear
// expect: WA | PV | RE
// dimension: correctness
// twin: self
// kind: order
// fast: fused_softmax_topk layer_norm_backward kv_cache
#include <atomic>
#include <thread>

#include "target.h"

static std::thread worker;

void attack_flush() {
  if (worker.joinable()) worker.join();
}

int attack(Call& call) {
  attack_flush();
#if ATTACK_IS_TWIN
  int status = ASSAY_OK;
  worker = std::thread([call, &status] { status = call.honest(); });
  worker.join();
  return status;
#else
  worker = std::thread([call] {
    usleep(20000);
    call.honest();
  });
  witness();
  return ASSAY_OK;
#endif
}
