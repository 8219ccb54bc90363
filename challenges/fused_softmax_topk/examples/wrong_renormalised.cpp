// fails: renormalised basic wide
// Probabilities over the K winners instead of over the row.
#include "around_naive.h"

static int answer(const Call& call) {
  return then(call, [&](const stk_params& p) {
    for (std::int64_t r = 0; r < p.rows; ++r) {
      float sum = 0;
      for (std::int64_t i = r * p.K; i < (r + 1) * p.K; ++i) sum += call.prob[i];
      for (std::int64_t i = r * p.K; i < (r + 1) * p.K; ++i) call.prob[i] /= sum > 0 ? sum : 1;
    }
  });
}
