// fails: sampling_a_logits_near_1000
// Takes exponentials without subtracting the largest logit: above 709 even a double overflows.
#include "drawing.h"

std::int32_t bonus_of(const Drawing& d) {
  for (std::int32_t j = 0; j < d.V; ++j) d.p[j] = std::exp(d.logits[j] / d.temperature);
  return draw(d.p, d.V, d.u);
}

DRAW_WITH(bonus_of)
