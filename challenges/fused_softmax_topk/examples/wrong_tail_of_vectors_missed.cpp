// fails: max_last v_127 v_1023
// Groups of four columns, and no loop for the last one to three.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.V = p.V / 4 * 4; });
}
