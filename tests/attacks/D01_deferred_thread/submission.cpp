// attack: returns at once; a thread writes the outputs while the harness goes on
// challenge: each
// cases: one-timed
// expect: WA | PV | RE
// fast: fused_softmax_topk layer_norm_backward
// kind: order
#include <thread>

#include "target.h"

static std::thread* worker = nullptr;

void attack_flush() {
  if (worker == nullptr) return;
  worker->join();
  delete worker;
  worker = nullptr;
}

int attack(Call& call) {
  attack_flush();
  worker = new std::thread([call] { call.honest(); });
  witness();
  return ASSAY_OK;
}
