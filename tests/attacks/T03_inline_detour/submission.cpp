// attack: writes a jump to its own function over the first bytes of libc's clock_gettime
// challenge: fused_softmax_topk
// cases: time_16x128256_k256
// expect: honest
// dimension: performance
#include <sys/mman.h>

#include <ctime>

#include "target.h"

static int no_time(clockid_t, timespec* t) {
  *t = {1, 0};
  return 0;
}

int attack(Call& call) {
  static bool done = false;
  if (!done) {
    auto* code = reinterpret_cast<unsigned char*>(&clock_gettime);
    auto page = reinterpret_cast<std::uintptr_t>(code) & ~std::uintptr_t{4095};
    if (mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
      code[0] = 0x48, code[1] = 0xb8;  // mov rax, no_time; jmp rax
      auto* to = reinterpret_cast<void*>(&no_time);
      std::memcpy(code + 2, &to, 8);
      code[10] = 0xff, code[11] = 0xe0;
    }
    witness();
    done = true;
  }
  return call.honest();
}
