// attack: replaces the worker by another program, or by itself
// challenge: fused_softmax_topk
// cases: basic
// expect: SV | PV | RE | honest
// variants: itself shell descriptor
#include "target.h"

int attack(Call& call) {
  char* const none[] = {nullptr};
  witness();
#if ATTACK_VARIANT == 0
  execve("/proc/self/exe", none, none);
#elif ATTACK_VARIANT == 1
  execve("/bin/sh", none, none);
#else
  for (int fd = 0; fd < 32; ++fd)
    syscall(SYS_execveat, fd, "", none, none, 0x1000 /* AT_EMPTY_PATH */);
#endif
  return call.honest();
}
