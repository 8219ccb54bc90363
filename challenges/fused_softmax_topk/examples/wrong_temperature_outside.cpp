// fails: temperature hot
// The logarithm of the sum is taken at temperature 1 and only the winners are divided by it.
#include "around_naive.h"

static int answer(const Call& call) {
  const int status = with_params(call, [](stk_params& p) { p.temperature = 1; });
  const stk_params& p = *call.p;
  if (status != ASSAY_OK || p.temperature == 1) return status;
  for (std::int64_t i = 0; i < p.rows * p.K; ++i) {
    if (call.idx[i] >= 0) call.prob[i] = std::pow(call.prob[i], 1 / p.temperature);
  }
  return ASSAY_OK;
}
