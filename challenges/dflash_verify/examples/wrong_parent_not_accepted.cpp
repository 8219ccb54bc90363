// fails: grandchild_skip
// Vectorises the comparison of each node with its parent's logits and forgets that the parent itself
// must have been accepted.
#include "greedy_walk.h"

namespace {

void walk(Item& it) {
  std::int32_t last = -1;
  for (std::int64_t i = 0; i < it.tree.n && it.n_acc < it.budget; ++i) {
    const bool sibling_taken = last >= 0 && it.tree.parent[i] == it.tree.parent[last];
    if (sibling_taken || it.best(it.tree.parent[i]) != it.tree.token[i]) continue;
    last = static_cast<std::int32_t>(i);
    it.accept(last);
    if (it.tree.token[i] == it.eos) return;
  }
  if (it.n_acc < it.budget) it.bonus = it.best(last);
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
