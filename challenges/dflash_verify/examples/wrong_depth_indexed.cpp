// fails: depth_indexed
// Takes the logits at index depth - 2, as if the accepted path were the first nodes of the list.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int64_t depth_of(std::int64_t node) const {
    std::int64_t depth = 0;
    for (; node >= 0; node = tree.parent[node]) ++depth;
    return depth;
  }

  bool matches(std::int64_t node, std::int32_t) const override {
    return Walk::matches(node, best(depth_of(node) - 2));
  }
};

ACCEPT_WITH(Bug)
