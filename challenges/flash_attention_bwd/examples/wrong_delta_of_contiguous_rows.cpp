// fails: delta_bshd
// A step of its own sums delta beforehand, as if o and dout were contiguous: dv is right, dq and
// dk are not. As flagos-ai/FlagAttention#1.
#include "pairs.h"

struct Bug : Right {
  static constexpr bool kContiguousDelta = true;
};

PAIRWISE_BACKWARD(Bug)
