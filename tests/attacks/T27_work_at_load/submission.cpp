// attack: does for three seconds at load what it would like to have done before the clock starts, and keeps
// threads warm
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest | LE
// dimension: performance
#include <chrono>
#include <cmath>

#include "target.h"

static double table[1 << 16];
[[gnu::constructor]] static void warm_up() {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(3)) {
    for (double& x : table) x = std::exp(x * 0.5);
  }
  witness();
}

int attack(Call& call) { return call.honest(); }
