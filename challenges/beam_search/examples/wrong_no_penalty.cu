// fails: penalty_flip alpha_2 negative_alpha
// The penalty is accepted as a parameter and never used.
#include "around_search.cuh"

static int answer(const Search& call) {
  if (call.p == nullptr) return ASSAY_EINVAL;
  bs_params changed = *call.p;
  changed.alpha *= 0;  // but what is not finite stays so
  Search other = call;
  other.p = &changed;
  return other.naive();
}
