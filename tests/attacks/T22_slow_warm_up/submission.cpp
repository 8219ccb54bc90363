// attack: sleeps in the first calls, so that fewer repetitions are made or later ones look fast beside them
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest
// dimension: performance
#include <ctime>

#include "target.h"

int attack(Call& call) {
  static int calls = 0;
  if (calls++ < 2) {
    const timespec long_time{1, 0};
    nanosleep(&long_time, nullptr);
  }
  witness();
  return call.honest();
}
