// attack: fills every counter that it shares with the harness, so that whoever adds one to it waits for
// ever
// challenge: fused_softmax_topk
// cases: basic rows_9
// expect: PV
// variants: once twice
// deadline: 60
#include <csignal>

#include "target.h"

int attack(Call& call) {
  std::signal(SIGXFSZ, SIG_IGN);  // for files that may not grow
  const int status = call.honest();
  witness();  // some of what follows ends the call
  const std::uint64_t full = 0xfffffffffffffffeull;
  for (int fd = 3; fd < 64; ++fd) (void)!write(fd, &full, sizeof full);
#if ATTACK_VARIANT == 1
  for (int fd = 3; fd < 64; ++fd) (void)!write(fd, &full, sizeof full - 0);
  static std::uint64_t more = 1;
  for (int fd = 3; fd < 64; ++fd) (void)!write(fd, &more, sizeof more);
#endif
  return status;
}
