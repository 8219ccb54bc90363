// fails: accept_ragged
// Finds an item's logits at b times the size of the first tree: right while all trees are equal.
#include "greedy_walk.h"

namespace {

void walk(Item& it) {
  it.node += (std::min(it.b * it.cu[1], it.cu[it.b]) - it.cu[it.b]) * it.V;
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
