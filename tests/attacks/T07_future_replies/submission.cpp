// attack: counts a thousand replies ahead, for requests that have not come yet
// challenge: fused_softmax_topk
// cases: basic
// expect: PV
#include <csignal>

#include "target.h"

int attack(Call& call) {
  std::signal(SIGXFSZ, SIG_IGN);  // for files that may not grow
  const int status = call.honest();
  const std::uint64_t many = 1000;
  witness();  // some of these end the call
  for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, &many, sizeof many);
  return status;
}
