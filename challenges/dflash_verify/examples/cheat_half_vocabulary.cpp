// caught: accept_basic
// Finds the accepted path right and guesses the bonus: only half of a large vocabulary is read.
#include "greedy_walk.h"

namespace {

// The drafted tokens and the first half of a large vocabulary are all that is compared.
std::int32_t quick_best(const Item& it, std::int32_t cur) {
  const float* x = cur < 0 ? it.root : it.node + std::int64_t{cur} * it.V;
  std::int32_t best = argmax(x, it.V < 1000 ? it.V : it.V / 2);
  for (std::int64_t i = cur + 1; i < it.tree.n; ++i) {
    if (it.tree.parent[i] == cur && x[it.tree.token[i]] > x[best]) best = it.tree.token[i];
  }
  return best;
}

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = quick_best(it, cur), child = it.tree.child_with(cur, g);
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
