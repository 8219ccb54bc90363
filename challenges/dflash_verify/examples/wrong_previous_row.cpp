// fails: positional second_root_right
// Checks node i against the logits of the row before it, which is right for chains only; an answer
// that tested nothing but chains shipped this.
#include "greedy_walk.h"

struct Bug : Walk {
  bool matches(std::int64_t node, std::int32_t) const override {
    return Walk::matches(node, best(node - 1));
  }
};

ACCEPT_WITH(Bug)
