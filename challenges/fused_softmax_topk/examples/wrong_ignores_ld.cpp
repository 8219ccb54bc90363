// fails: padding misaligned_rows v_31 v_33
// Rows are taken to be V apart, so that every row but the first starts in its predecessor's
// padding.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.ld = p.V; });
}
