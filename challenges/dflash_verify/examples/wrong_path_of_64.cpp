// fails: accept_deep_256
// A fixed array of 64 accepted nodes, beyond which the walk just ends.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t child(std::int32_t cur, std::int32_t token) const override {
    return n_acc == 64 ? -1 : Walk::child(cur, token);
  }
};

ACCEPT_WITH(Bug)
