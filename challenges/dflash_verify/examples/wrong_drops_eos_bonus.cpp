// fails: eos_bonus
// Treats an end of sequence in the bonus place as nothing to emit.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t bonus_after(std::int32_t, std::int32_t token) const override {
    return token == eos ? -1 : token;
  }
};

ACCEPT_WITH(Bug)
