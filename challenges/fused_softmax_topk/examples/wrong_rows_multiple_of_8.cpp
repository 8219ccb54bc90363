// fails: rows_7 rows_9 rows_33
// Eight rows per block and no block for the rest: the last rows stay unwritten.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_params(call, [](stk_params& p) { p.rows = p.rows / 8 * 8; });
}
