// attack: reads the harness's memory as a debugger would
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: ptrace read write
// witness: verdict SV
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "bare.h"

int attack(assay_ctx*) {
#if ATTACK_VARIANT == 0
  ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr);
#elif ATTACK_VARIANT == 1
  char here[8];
  iovec local{here, 8}, remote{reinterpret_cast<void*>(0x400000), 8};
  process_vm_readv(getppid(), &local, 1, &remote, 1, 0);
#else
  char here[8] = "x";
  iovec local{here, 8}, remote{reinterpret_cast<void*>(0x400000), 8};
  process_vm_writev(1, &local, 1, &remote, 1, 0);
#endif
  return kGotIt;
}
