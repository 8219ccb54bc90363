// For examples whose dv_accept in mode A is the right one but for how a bonus that follows the
// prefix at once is drawn.
#pragma once

#include "accept.h"

namespace {

// An item whose first draw is the bonus.
struct Drawing {
  const float* logits;
  std::int32_t V;
  double temperature;
  double u;   // the uniform number
  double* p;  // room for V numbers
};

template <class Draw>
int draw_with(Draw bonus_of, const Acceptance& a) {
  const int status = a.rightly();
  if (status != ASSAY_OK || a.mode() != DV_SAMPLE_TREE) return status;
  const Scratch<double> p(a.ctx, a.V);
  for (std::int32_t b = 0; b < a.B; ++b) {
    if (a.n_acc[b] > 0 || a.bonus[b] < 0) continue;
    a.bonus[b] = bonus_of(Drawing{a.root(b), a.V, a.sampling->temperature,
                                  a.sampling->uniform[b * a.sampling->u_item], p.data()});
  }
  return ASSAY_OK;
}

}  // namespace

// At the end of the file.
#define DRAW_WITH(bonus_of) ACCEPT_BY([](const Acceptance& a) { return draw_with(bonus_of, a); })
