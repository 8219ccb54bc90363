// attack: counts a reply on every descriptor that is open before it has computed anything, so that the
// clock stops
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: PV | WA
#include <csignal>

#include "target.h"

int attack(Call& call) {
  std::signal(SIGXFSZ, SIG_IGN);  // for files that may not grow
  const std::uint64_t one = 1;
  witness();  // some of these end the call
  for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, &one, sizeof one);
  return call.honest();
}
