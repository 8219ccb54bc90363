// fails: accept_n_1000
// One thread per node in a block of 256: the nodes after those take no part.
#include "greedy_walk.h"

struct Bug : Walk {
  bool matches(std::int64_t node, std::int32_t token) const override {
    return node < 256 && Walk::matches(node, token);
  }
};

ACCEPT_WITH(Bug)
