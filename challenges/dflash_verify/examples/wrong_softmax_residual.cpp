// fails: lossless_chi2_b sampling_b
// Puts the residual max(0, p - q) through a softmax where it must only be divided by its sum.
#include "rejection.h"

std::int32_t after_rejection(const Rejection& r) {
  for (std::int64_t t = 0; t < r.roots; ++t) {
    double sum = 0;
    for (std::int32_t j = 0; j < r.V; ++j) sum += r.p[j] = std::exp(std::max(0.0, r.p[j] - r.q[j]));
    for (std::int32_t j = 0; j < r.V; ++j) r.p[j] /= sum;
  }
  return draw(r.p, r.V, r.u);
}

REJECT_WITH(after_rejection)
