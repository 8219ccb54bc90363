// attack: opens the challenge's folder, accounts, homes, keys and devices
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <fcntl.h>

#include "target.h"

static bool opens(const char* path) { return open(path, O_RDONLY | O_CLOEXEC) >= 0; }

int attack(Call& call) {
  for (const char* path : {"/etc/passwd", "/etc/shadow", "/root", "/home", "/root/.ssh/id_rsa",
                           "/dev/mem", "/dev/kmsg", "/sys/kernel", "/var/log", "/boot",
                           "../challenges", "/work", "/tmp", "/dev/shm"}) {
    if (opens(path)) return kGotIt;
  }
  witness();
  return call.honest();
}
