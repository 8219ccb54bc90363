// For examples whose sampled dv_accept is the right one but for what it draws when every root is
// rejected.
#pragma once

#include "accept.h"

namespace {

// An item of which every root was rejected.
struct Rejection {
  double* p;       // the target's distribution; may be changed
  const float* q;  // the draft's
  std::int32_t V;
  std::int64_t roots;
  double u;  // the uniform number for what is drawn now
};

template <class Draw>
int reject_with(Draw draw_after, const Acceptance& a) {
  const int status = a.rightly();
  if (status != ASSAY_OK || a.mode() != DV_SAMPLE_IID) return status;
  const Scratch<double> p(a.ctx, a.V);
  for (std::int32_t b = 0; b < a.B; ++b) {
    if (a.n_acc[b] > 0 || a.bonus[b] < 0) continue;
    const std::int64_t roots = std::count(a.parent + a.cu[b], a.parent + a.cu[b + 1], -1);
    softmax(a.root(b), a.V, a.sampling->temperature, p.data());
    a.bonus[b] = draw_after(Rejection{p.data(), a.sampling->root_q + std::int64_t{b} * a.V, a.V,
                                      roots, a.sampling->uniform[b * a.sampling->u_item + roots]});
  }
  return ASSAY_OK;
}

}  // namespace

// At the end of the file.
#define REJECT_WITH(draw_after) \
  ACCEPT_BY([](const Acceptance& a) { return reject_with(draw_after, a); })
