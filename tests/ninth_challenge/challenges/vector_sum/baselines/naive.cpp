// The plain implementation: one sum in fp64.
#include "abi.h"

extern "C" int vector_sum(assay_ctx*, const vs_params* p, const float* x, float* sum) {
  if (p == nullptr || p->size != sizeof(vs_params) || p->n < 0) return ASSAY_EINVAL;
  double total = 0;
  for (int64_t i = 0; i < p->n; ++i) total += x[i];
  *sum = static_cast<float>(total);
  return ASSAY_OK;
}
