// fails: zero_signs
// A radix key made of the bits orders -0 below +0; here by replacing it with the smallest negative.
#include "around_naive.h"

static int answer(const Call& call) {
  return with_logits(call, [](std::vector<float>& logits) {
    for (float& x : logits) {
      if (x == 0 && std::signbit(x)) x = -std::numeric_limits<float>::denorm_min();
    }
  });
}
