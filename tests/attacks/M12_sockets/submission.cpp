// attack: opens a socket
// challenge: fused_softmax_topk
// cases: basic
// expect: SV
// variants: inet inet6 unix netlink vsock packet pair
// witness: verdict SV
#include <sys/socket.h>

#include "bare.h"

int attack(assay_ctx*) {
  const int family[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK, AF_VSOCK, AF_PACKET};
  if (ATTACK_VARIANT == 6) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  } else {
    socket(family[ATTACK_VARIANT % 6],
           ATTACK_VARIANT == 3 || ATTACK_VARIANT == 5 ? SOCK_RAW : SOCK_STREAM, 0);
  }
  return kGotIt;
}
