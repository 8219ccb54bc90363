// fails: long_sum
// One fp32 accumulator per column over all rows.
#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) { return with_column_sums<float>(call); }
};

LAYER_NORM(Bug)
