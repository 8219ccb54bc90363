// fails: all_in_one_thread_strip
// 256 strips of columns (j mod 256), as the threads of a block take them, each keep their 16 best,
// and the merge cannot find what a strip has dropped. Random rows hide it; real answers had this
// list length.
#include "selection.h"

static int answer(const Call& call) {
  return among_kept(call, [](float* x, std::int64_t V) {
    for (std::int64_t s = 0; s < 256; ++s) keep_largest(x, s, 256, V, 16);
  });
}
