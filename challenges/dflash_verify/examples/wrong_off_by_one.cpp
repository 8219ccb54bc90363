// fails: off_by_one full_accept_bonus second_root_right
// Checks a node against the logits at its own position, as drafts of this algorithm often say:
// those predict the token after the node.
#include "greedy_walk.h"

struct Bug : Walk {
  bool matches(std::int64_t node, std::int32_t) const override {
    return Walk::matches(node, best(node));
  }
};

ACCEPT_WITH(Bug)
