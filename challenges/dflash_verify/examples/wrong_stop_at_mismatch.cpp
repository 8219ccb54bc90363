// fails: second_root_right positional depth_indexed child_would_match dfs_and_bfs_order
// Ends the cycle at the first child that does not match instead of trying its siblings. The text stays
// right, but a tree accepts no more than its leftmost path.
#include "greedy_walk.h"

namespace {

std::int32_t first_child(const Tree& tree, std::int32_t cur) {
  for (std::int64_t i = cur + 1; i < tree.n; ++i) {
    if (tree.parent[i] == cur) return static_cast<std::int32_t>(i);
  }
  return -1;
}

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), first = first_child(it.tree, cur);
    const std::int32_t child = first >= 0 && it.tree.token[first] == g ? first : -1;
    if (child < 0) {
      it.bonus = g;
      return;
    }
    it.accept(child);
    if (g == it.eos) return;
    cur = child;
  }
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
