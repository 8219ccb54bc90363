// attack: leaves shared memory, a queue or a key behind for the next cell
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: shm sem msg key queue
// witness: verdict SV
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "bare.h"

int attack(assay_ctx*) {
#if ATTACK_VARIANT == 0
  shmget(0x6173, 4096, IPC_CREAT | 0666);
#elif ATTACK_VARIANT == 1
  semget(0x6173, 1, IPC_CREAT | 0666);
#elif ATTACK_VARIANT == 2
  msgget(0x6173, IPC_CREAT | 0666);
#elif ATTACK_VARIANT == 3
  syscall(SYS_add_key, "user", ATTACK_MARK, "x", 1, -4);
#else
  syscall(SYS_mq_open, ATTACK_MARK, 0102, 0666, nullptr);
#endif
  return kGotIt;
}
