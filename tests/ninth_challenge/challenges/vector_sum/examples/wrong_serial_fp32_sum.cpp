// fails: long_sum
// One fp32 accumulator for the whole vector.
#include "abi.h"

extern "C" int vector_sum(assay_ctx*, const vs_params* p, const float* x, float* sum) {
  if (p == nullptr || p->n < 0) return ASSAY_EINVAL;
  *sum = 0;
  for (int64_t i = 0; i < p->n; ++i) *sum += x[i];
  return ASSAY_OK;
}
