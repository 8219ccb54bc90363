// fails: temperature
// The temperature is left out.
#include "around_naive.cuh"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.temperature = 1; });
}
