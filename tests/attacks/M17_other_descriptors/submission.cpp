// attack: uses descriptors that it should not have: duplicates them, locks them, makes memory of its own to
// pass on
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | SV | PV
// variants: duplicate memory lock
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "target.h"

int attack(Call& call) {
#if ATTACK_VARIANT == 0
  for (int fd = 0; fd < 64; ++fd) {
    if (dup(fd) >= 0) return kGotIt;
  }
#elif ATTACK_VARIANT == 1
  if (memfd_create(ATTACK_MARK, 0) >= 0) return kGotIt;
#else
  for (int fd = 0; fd < 64; ++fd) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (fcntl(fd, F_SETLK, &lock) == 0) return kGotIt;
  }
#endif
  witness();
  return call.honest();
}
