// fails: rope_base logits_odd
// The base of the rotation is 10,000 whatever the configuration says.
#include "around_logits.cuh"

static int answer(const Reading& call) {
  return with_config(call, [](tt_config& c) { c.theta = 10000; });
}
