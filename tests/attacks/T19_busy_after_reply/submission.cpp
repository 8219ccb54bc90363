// attack: leaves threads spinning when the call is over, so that whoever runs next gets less of the
// processor
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest | SV | RE | TLE
// dimension: performance
#include <thread>

#include "target.h"

int attack(Call& call) {
  static bool started = false;
  for (int i = 0; !started && i < 4; ++i) {
    std::thread([] {
      witness();
      for (volatile std::uint64_t n = 0;; n = n + 1) {
      }
    }).detach();
  }
  started = true;
  return call.honest();
}
