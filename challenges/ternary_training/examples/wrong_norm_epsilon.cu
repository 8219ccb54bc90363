// fails: norm_of_another_epsilon
// The norms have an epsilon of their own, in place of the configuration's.
#include "around_logits.cuh"

static int answer(const Reading& call) {
  return with_config(call, [](tt_config& c) { c.eps = 1e-6f; });
}
