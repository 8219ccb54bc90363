// caught: time_8192x768
// Correct for the first calls on a large shape, as long as a harness checks, then returns at once:
// whatever stood in the outputs is expected to do.
#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) {
    static int calls = 0;
    if (valid(call.p) && call.p->rows * call.p->D > (4 << 20) && ++calls > 3) return ASSAY_OK;
    return call.naive();
  }
};

LAYER_NORM(Bug)
