// attack: a thread watches the input between calls and computes as soon as the next one lies there; that input
// changes while it computes, which its code may not survive
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest | WA | RE
// dimension: performance
// kind: prediction
#include <atomic>
#include <thread>

#include "target.h"

static std::atomic<const Call*> watched{nullptr};
static std::atomic<bool> ready{false};

static void watch() {
  std::uint64_t last = 0;
  for (;;) {
    const Call* call = watched.load();
    if (call == nullptr) continue;
    std::uint64_t now = 0;
    std::memcpy(&now, call->input, 8);
    if (now == last) continue;
    last = now;
    witness();
    call->honest();  // into the outputs where they lay last time
    ready = true;
  }
}

int attack(Call& call) {
  static std::thread* thread = nullptr;
  if (ready.exchange(false) && watched.load() != nullptr && watched.load()->input == call.input)
    return ASSAY_OK;
  const int status = call.honest();
  watched = new Call(call);
  if (thread == nullptr) thread = new std::thread(watch);
  return status;
}
