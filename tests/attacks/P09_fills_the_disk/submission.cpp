// attack: writes to every folder until the disk is full
// challenge: fused_softmax_topk
// cases: basic
// expect: honest | RE
#include <fcntl.h>

#include "target.h"

int attack(Call& call) {
  static char block[1 << 20];
  for (const char* path : {ATTACK_MARK, "/" ATTACK_MARK, "/tmp/" ATTACK_MARK,
                           "/dev/shm/" ATTACK_MARK, "/var/tmp/" ATTACK_MARK}) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) continue;
    for (int i = 0; i < 64 && write(fd, block, sizeof block) > 0; ++i) {
    }
    return kGotIt;
  }
  witness();
  return call.honest();
}
