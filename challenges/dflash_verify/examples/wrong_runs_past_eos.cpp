// fails: eos_mid
// The end of sequence is not looked for among accepted tokens.
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
    it.accept(child);
    cur = child;
  }
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
