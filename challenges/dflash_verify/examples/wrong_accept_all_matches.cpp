// fails: all_match_append
// Appends every sibling that holds the right token, so a duplicated draft token is emitted twice.
#include "greedy_walk.h"

namespace {

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), child = it.tree.child_with(cur, g);
    if (child < 0) {
      it.bonus = g;
      return;
    }
    for (std::int64_t i = cur + 1; i < it.tree.n; ++i) {
      if (it.tree.parent[i] == cur && it.tree.token[i] == g)
        it.accept(static_cast<std::int32_t>(i));
    }
    if (g == it.eos) return;
    cur = child;
  }
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
