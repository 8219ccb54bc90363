// attack: replies at once, and a thread that keeps the worker from stopping, or continues it,
// does the work that its twin does before it replies
// challenge: each
// cases: one-core dflash_verify:attention_basic ternary_training:linear
// expect: WA | PV | SV | RE
// dimension: correctness
// twin: self
// kind: stops
// fast: fused_softmax_topk layer_norm_backward kv_cache
#include <chrono>
#include <csignal>
#include <thread>

#include "target.h"

int attack(Call& call) {
#if ATTACK_IS_TWIN
  return call.honest();
#else
  std::thread([call] {
    // For longer than a busy harness takes from the reply to the stop.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end) {
      for (int tid = 1; tid < 16; ++tid) syscall(SYS_tgkill, getpid(), tid, SIGCONT);
    }
    call.honest();
    for (;;) syscall(SYS_kill, getpid(), SIGCONT);
  }).detach();
  witness();
  return ASSAY_OK;
#endif
}
