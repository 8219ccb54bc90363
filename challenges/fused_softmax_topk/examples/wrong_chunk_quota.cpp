// fails: all_in_one_chunk rows_8 rows_33
// Each chunk of 1024 columns passes on only its 16 best, the quota of one warp.
#include "selection.h"

static int answer(const Call& call) {
  return among_kept(call, [](float* x, std::int64_t V) {
    for (std::int64_t c = 0; c < V; c += 1024) keep_largest(x, c, 1, std::min(c + 1024, V), 16);
  });
}
