// fails: lse_only_null
// Refuses a call that does not ask for lse.
#include "around_naive.cuh"

static int answer(const Call& call) {
  return call.lse == nullptr ? static_cast<int>(ASSAY_EINVAL) : call.naive();
}
