// fails: noncausal rising_max
// The causal mask is hard-wired.
#include "around_naive.cuh"

static int answer(const Call& call) {
  return with_params(call, [](fa_params& p) { p.causal = 1; });
}
