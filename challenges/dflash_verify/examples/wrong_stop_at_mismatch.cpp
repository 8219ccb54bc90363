// fails: second_root_right positional depth_indexed child_would_match dfs_and_bfs_order
// Ends the cycle at the first child that does not match instead of trying its siblings. The text
// stays right, but a tree accepts no more than its leftmost path.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t child(std::int32_t cur, std::int32_t token) const override {
    for (std::int64_t i = cur + 1; i < tree.n; ++i) {
      if (tree.parent[i] == cur) return matches(i, token) ? static_cast<std::int32_t>(i) : -1;
    }
    return -1;
  }
};

ACCEPT_WITH(Bug)
