// fails: k_gt_32 k_100 k_257 k_1000
// The launcher has instances for K = 1, 8, 16, 32, 64, 128, 256 and 512 and takes the next smaller
// one.
#include "around_naive.h"

static int answer(const Call& call) {
  if (!call.valid()) return ASSAY_EINVAL;
  stk_params instance = *call.p;
  instance.K = 0;
  for (const std::int32_t k : {1, 8, 16, 32, 64, 128, 256, 512}) {
    if (k <= call.p->K) instance.K = k;
  }
  int status = ASSAY_OK;
  for (std::int64_t r = 0; status == ASSAY_OK && r < call.p->rows; ++r)
    status = call.naive_row(instance, r);
  return status;
}
