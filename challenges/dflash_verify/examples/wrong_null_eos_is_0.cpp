// fails: null_eos_token_0
// Where no end of sequence is given, token 0 ends it.
#include "greedy_walk.h"

struct Bug : Walk {
  bool ends(std::int32_t i) const override { return tree.token[i] == (eos == -1 ? 0 : eos); }
};

ACCEPT_WITH(Bug)
