// fails: ties
// The largest logit by >=: the highest id of equal ones.
#include "greedy_walk.h"

namespace {

std::int32_t last_of_largest(const float* x, std::int32_t n) {
  std::int32_t j = 0;
  for (std::int32_t i = 1; i < n; ++i) {
    if (x[i] >= x[j]) j = i;
  }
  return j;
}

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const float* x = cur < 0 ? it.root : it.node + std::int64_t{cur} * it.V;
    const std::int32_t g = last_of_largest(x, it.V), child = it.tree.child_with(cur, g);
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
