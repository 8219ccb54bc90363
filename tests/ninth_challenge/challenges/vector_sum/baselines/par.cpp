// The expert implementation: bound by memory, so one core with enough sums at a time.
#include "abi.h"

namespace {

constexpr int kLanes = 32;

}  // namespace

extern "C" int vector_sum(assay_ctx*, const vs_params* p, const float* x, float* sum) {
  if (p == nullptr || p->size != sizeof(vs_params) || p->n < 0) return ASSAY_EINVAL;
  double lanes[kLanes] = {}, total = 0;
  int64_t i = 0;
  for (; i + kLanes <= p->n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  }
  for (; i < p->n; ++i) total += x[i];
  for (const double lane : lanes) total += lane;
  *sum = static_cast<float>(total);
  return ASSAY_OK;
}
