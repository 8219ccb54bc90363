// fails: merge_all_threads
// The merge reads the lists of the first 100 of 256 threads only, as one published answer did.
#include "selection.h"

static int answer(const Call& call) {
  return among_kept(call, [](float* x, std::int64_t V) {
    for (std::int64_t j = 0; j < V; ++j) {
      if (j % 256 >= 100) x[j] = -std::numeric_limits<float>::infinity();
    }
  });
}
