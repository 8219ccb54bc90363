// attack: writes text that looks like an answer to every descriptor there is
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | PV
#include <csignal>

#include "target.h"

int attack(Call& call) {
  std::signal(SIGXFSZ, SIG_IGN);  // for files that may not grow
  const int status = call.honest();
  witness();  // some of these end the call
  for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, "OK\n", 3);
  return status;
}
