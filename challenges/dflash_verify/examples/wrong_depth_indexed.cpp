// fails: depth_indexed
// Takes the logits at index depth - 2, as if the accepted path were the first nodes of the list.
#include "greedy_walk.h"

namespace {

std::int64_t depth_of(const Tree& tree, std::int64_t i) {
  std::int64_t depth = 0;
  for (; i >= 0; i = tree.parent[i]) ++depth;
  return depth;
}

// The first child of cur that passes the check, or -1.
std::int32_t matching_child(const Item& it, std::int32_t cur) {
  for (std::int64_t i = cur + 1; i < it.tree.n; ++i) {
    if (it.tree.parent[i] == cur && it.best(depth_of(it.tree, i) - 2) == it.tree.token[i])
      return static_cast<std::int32_t>(i);
  }
  return -1;
}

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t child = matching_child(it, cur);
    if (child < 0) {
      it.bonus = it.best(cur);
      return;
    }
    it.accept(child);
    if (it.tree.token[child] == it.eos) return;
    cur = child;
  }
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
