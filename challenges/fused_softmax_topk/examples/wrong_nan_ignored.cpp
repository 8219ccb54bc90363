// fails: nan_row_between
// Comparisons with NaN are false, so the NaN is never selected and never noticed.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_logits(call, [](std::vector<float>& logits) {
    for (float& x : logits) {
      if (std::isnan(x)) x = -std::numeric_limits<float>::infinity();
    }
  });
}
