// attack: shrinks, unmaps or makes writable the memory that it shares with the harness
// challenge: fused_softmax_topk
// cases: basic
// expect: RE | SV | honest | PV
// variants: shrink unmap unprotect
#include <sys/mman.h>

#include "target.h"

int attack(Call& call) {
  auto page = reinterpret_cast<std::uintptr_t>(call.input) & ~std::uintptr_t{4095};
  witness();
#if ATTACK_VARIANT == 0
  for (int fd = 0; fd < 64; ++fd) (void)!ftruncate(fd, 0);
  return call.honest();
#elif ATTACK_VARIANT == 1
  munmap(reinterpret_cast<void*>(page), call.input_bytes);
  return call.honest();
#else
  if (mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE) == 0) return kGotIt;
  return call.honest();
#endif
}
