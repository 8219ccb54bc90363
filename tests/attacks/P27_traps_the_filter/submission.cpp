// attack: handles SIGSYS and then makes a forbidden call, as if the filter could be survived
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// witness: verdict SV
#include <sys/socket.h>

#include <csignal>

#include "bare.h"

int attack(assay_ctx*) {
  struct sigaction survive {};
  survive.sa_handler = [](int) {};
  sigaction(SIGSYS, &survive, nullptr);
  socket(AF_INET, SOCK_STREAM, 0);
  return kGotIt;
}
