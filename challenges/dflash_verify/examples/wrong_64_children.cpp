// fails: accept_wide_256
// Children kept in the bits of one 64-bit word: later siblings are never tried.
#include "greedy_walk.h"

namespace {

std::int32_t early_child(const Item& it, std::int32_t cur, std::int32_t g) {
  int seen = 0;
  for (std::int64_t i = cur + 1; i < it.tree.n && seen < 64; ++i) {
    if (it.tree.parent[i] != cur) continue;
    if (it.tree.token[i] == g) return static_cast<std::int32_t>(i);
    ++seen;
  }
  return -1;
}

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), child = early_child(it, cur, g);
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
