// attack: handles SIGSEGV by returning to the instruction that caused it
// challenge: fused_softmax_topk
// cases: basic
// expect: TLE | TLE-idle
#include <csignal>

#include "bare.h"

int attack(assay_ctx*) {
  std::signal(SIGSEGV, [](int) { std::signal(SIGSEGV, SIG_DFL); });
  struct sigaction again {};
  again.sa_handler = [](int) { witness(); };
  sigaction(SIGSEGV, &again, nullptr);
  *reinterpret_cast<volatile int*>(8) = 1;
  return kGotIt;
}
