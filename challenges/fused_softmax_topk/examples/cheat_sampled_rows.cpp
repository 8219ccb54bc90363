// caught: launch_many_rows
// Beyond a thousand rows only every second one is computed and its neighbour gets a copy: a check
// of a few rows would have to be lucky.
#include "around_naive.h"

static int answer(const Call& call) {
  return then(call, [&](const stk_params& p) {
    for (std::int64_t r = 1; p.rows > 1000 && r < p.rows; r += 2) {
      std::copy_n(call.idx + (r - 1) * p.K, p.K, call.idx + r * p.K);
      std::copy_n(call.prob + (r - 1) * p.K, p.K, call.prob + r * p.K);
      if (call.lse != nullptr) call.lse[r] = call.lse[r - 1];
    }
  });
}
