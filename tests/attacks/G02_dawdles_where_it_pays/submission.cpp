// attack: is slow on purpose where it is compared with itself: in the full shape, so that the masked one
// looks good beside it
// challenge: flash_attention_fwd
// cases: causal_2048 full_2048
// expect: honest | WA
// dimension: resources
// fast: none
// deadline: 400
#include "target.h"

#include <ctime>

static int dawdle(Call& call, bool full) {
  const int status = call.honest();
  if (full) {
    const timespec t{0, 400'000'000};
    nanosleep(&t, nullptr);
  }
  return status;
}

static bool full_shape = false;
int attack(Call& call) { return dawdle(call, full_shape); }
