// attack: leaves a file for the next cell wherever one may be written
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <fcntl.h>
#include <sys/stat.h>

#include "target.h"

int attack(Call& call) {
  for (const char* folder :
       {"", "/", "/tmp/", "/var/tmp/", "/dev/shm/", "/dev/mqueue/", "/home/", "/usr/lib/"}) {
    char path[64];
    std::strcpy(path, folder);
    std::strcat(path, ATTACK_MARK);
    if (open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) >= 0) return kGotIt;
    if (mkdir(path, 0777) == 0) return kGotIt;
  }
  witness();
  return call.honest();
}
