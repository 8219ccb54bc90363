// fails: lse_minus_inf masked_poison nan_dout
// Masked scores are set to -inf and take part: e^(-inf + inf) in rows without keys, and 0 times
// NaN.
#include "pairs.h"

struct Bug : Right {
  static constexpr bool kMaskedKeysTakePart = true;
};

PAIRWISE_BACKWARD(Bug)
