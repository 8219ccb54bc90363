// fails: accept_n_0 accept_ragged
// Skips items without nodes, although the root's logits still give a token.
#include "greedy_walk.h"

namespace {

void walk(Item& it) {
  if (it.tree.n == 0) return;
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), child = it.tree.child_with(cur, g);
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
