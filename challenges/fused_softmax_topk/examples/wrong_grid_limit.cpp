// fails: launch_many_rows
// Rows on a grid dimension that ends at 65535.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.rows = std::min<std::int64_t>(p.rows, 65535); });
}
