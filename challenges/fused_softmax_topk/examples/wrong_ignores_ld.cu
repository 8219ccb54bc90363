// fails: padding misaligned_rows
// Rows are taken to be V elements apart, whatever ld says.
#include "around_naive.cuh"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.ld = p.V; });
}
