// fails: nan_row_between
// The flag 'this row is poisoned' is not reset between the rows of a block of 8.
#include "around_naive.h"

static int answer(const Call& call) {
  return then(call, [&](const stk_params& p) {
    bool poisoned = false;
    for (std::int64_t r = 0; p.K > 0 && r < p.rows; ++r) {
      if (r % 8 == 0) poisoned = false;
      poisoned = poisoned || std::isnan(call.prob[r * p.K]);
      for (std::int64_t i = r * p.K; poisoned && i < (r + 1) * p.K; ++i) {
        call.idx[i] = -1;
        call.prob[i] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  });
}
