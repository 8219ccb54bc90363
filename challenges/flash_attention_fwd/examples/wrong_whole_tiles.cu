// fails: uneven_63 uneven_65 uneven_97 uneven_300 uneven_1023
// Only whole tiles of 64 keys; the rest is dropped.
#include "around_naive.cuh"

static int answer(const Call& call) {
  return with_params(call, [](fa_params& p) { p.Nk = p.Nk / 64 * 64; });
}
