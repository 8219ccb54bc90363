// fails: sampling_a_impossible_token
// Draws the first token at which the running sum reaches the uniform number, where it must exceed
// it: 0 draws token 0, whatever its probability.
#include "drawing.h"

std::int32_t bonus_of(const Drawing& d) {
  softmax(d.logits, d.V, static_cast<float>(d.temperature), d.p);
  double sum = 0;
  for (std::int32_t j = 0; j < d.V; ++j) {
    sum += d.p[j];
    if (sum >= d.u) return j;
  }
  return d.V - 1;
}

DRAW_WITH(bonus_of)
