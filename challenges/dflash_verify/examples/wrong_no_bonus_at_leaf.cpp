// fails: full_accept_bonus off_by_one
// Emits a correction after a mismatch but nothing after a branch that was accepted to its leaf.
#include "greedy_walk.h"

namespace {

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), child = it.tree.child_with(cur, g);
    if (child < 0) {
      const auto* end = it.tree.parent + it.tree.n;
      const bool leaf = cur >= 0 && std::find(it.tree.parent, end, cur) == end;
      it.bonus = leaf ? -1 : g;
      return;
    }
    it.accept(child);
    if (g == it.eos) return;
    cur = child;
  }
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
