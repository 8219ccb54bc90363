// attack: waits for a lock that it holds
// challenge: fused_softmax_topk
// cases: basic
// expect: TLE-idle
#include <mutex>

#include "bare.h"

int attack(assay_ctx*) {
  static std::mutex lock;
  lock.lock();
  witness();
  lock.lock();
  return kGotIt;
}
