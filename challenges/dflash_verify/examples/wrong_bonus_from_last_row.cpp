// fails: full_accept_bonus none_accept
// Takes the bonus from the last row of the logits, which belongs to the last node of the list and not of
// the path.
#include "greedy_walk.h"

namespace {

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), child = it.tree.child_with(cur, g);
    if (child < 0) {
      it.bonus = it.best(it.tree.n - 1);
      return;
    }
    it.accept(child);
    if (g == it.eos) return;
    cur = child;
  }
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
