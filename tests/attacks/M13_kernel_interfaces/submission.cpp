// attack: uses an interface of the kernel that computing does not need
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: io_uring bpf userfaultfd perf keyctl unshare mount chroot module personality
// witness: verdict SV
#include "bare.h"

int attack(assay_ctx*) {
  static long room[64];
#if ATTACK_VARIANT == 0
  syscall(SYS_io_uring_setup, 8, room);
#elif ATTACK_VARIANT == 1
  syscall(SYS_bpf, 0, room, sizeof room);
#elif ATTACK_VARIANT == 2
  syscall(SYS_userfaultfd, 0);
#elif ATTACK_VARIANT == 3
  syscall(SYS_perf_event_open, room, 0, -1, -1, 0);
#elif ATTACK_VARIANT == 4
  syscall(SYS_keyctl, 0, -3, 1);
#elif ATTACK_VARIANT == 5
  syscall(SYS_unshare, 0x10000000);
#elif ATTACK_VARIANT == 6
  syscall(SYS_mount, "none", "/", "tmpfs", 0, 0);
#elif ATTACK_VARIANT == 7
  syscall(SYS_chroot, "/");
#elif ATTACK_VARIANT == 8
  syscall(SYS_init_module, room, 8, "");
#else
  syscall(SYS_personality, 0x0040000);
#endif
  return kGotIt;
}
