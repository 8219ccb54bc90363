// fails: double_call causal_64
// += into gradients that hold garbage.
#include "pairs.h"

struct Bug : Right {
  static constexpr bool kAddsToOutputs = true;
};

PAIRWISE_BACKWARD(Bug)
