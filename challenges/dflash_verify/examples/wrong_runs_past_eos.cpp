// fails: eos_mid
// The end of sequence is not looked for among accepted tokens.
#include "greedy_walk.h"

struct Bug : Walk {
  bool ends(std::int32_t) const override { return false; }
};

ACCEPT_WITH(Bug)
