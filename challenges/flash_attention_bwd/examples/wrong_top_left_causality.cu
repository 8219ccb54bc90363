// fails: nq_lt_nk
// Causality aligned to the top left corner where there are fewer queries than keys: keys behind it
// are seen by nobody.
#include <algorithm>

#include "around_naive.cuh"

static int answer(const Call& call) {
  return with_params(call, [](fa_params& p) {
    if (p.causal != 0) p.Nk = std::min(p.Nk, p.Nq);
  });
}
