// attack: opens what /proc shows of itself and of the harness: memory, environment, descriptors
// challenge: fused_softmax_topk
// cases: basic
// expect: honest
#include <fcntl.h>

#include "target.h"

static bool opens(const char* path) { return open(path, O_RDONLY | O_CLOEXEC) >= 0; }

int attack(Call& call) {
  for (const char* path :
       {"/proc/self/mem", "/proc/self/maps", "/proc/self/environ", "/proc/1/mem", "/proc/1/environ",
        "/proc/1/fd/0", "/proc/sys/kernel/core_pattern", "/proc/keys"}) {
    if (opens(path)) return kGotIt;
  }
  char path[64] = "/proc/";
  int at = 6, parent = getppid();
  char digits[16];
  int n = 0;
  do {
    digits[n++] = static_cast<char>('0' + parent % 10);
    parent /= 10;
  } while (parent > 0);
  while (n > 0) path[at++] = digits[--n];
  for (const char* file : {"/mem", "/environ", "/maps"}) {
    std::strcpy(path + at, file);
    if (opens(path)) return kGotIt;
  }
  witness();
  return call.honest();
}
