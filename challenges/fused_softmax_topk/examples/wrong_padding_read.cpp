// fails: padding v_tails_50257
// The row length is taken to be ld.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.V = p.ld; });
}
