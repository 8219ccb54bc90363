// attack: a thread reads whatever arrives on any descriptor, so that requests vanish
// challenge: fused_softmax_topk
// cases: basic rows_9 ties_all
// expect: honest | PV | TLE | TLE-idle
// deadline: 90
// fast: none
#include <poll.h>

#include <thread>

#include "target.h"

int attack(Call& call) {
  const int status = call.honest();
  std::thread([] {
    for (;;) {
      for (int fd = 3; fd < 32; ++fd) {
        pollfd one{fd, POLLIN, 0};
        std::uint64_t taken = 0;
        if (poll(&one, 1, 0) == 1 && (one.revents & POLLIN) != 0)
          (void)!read(fd, &taken, sizeof taken);
        witness();
      }
    }
  }).detach();
  return status;
}
