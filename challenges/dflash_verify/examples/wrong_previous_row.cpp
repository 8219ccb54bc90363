// fails: positional second_root_right
// Checks node i against the logits of the row before it, which is right for chains only; an answer that
// tested nothing but chains shipped this.
#include "greedy_walk.h"

namespace {

// The first child of cur that passes the check, or -1.
std::int32_t matching_child(const Item& it, std::int32_t cur) {
  for (std::int64_t i = cur + 1; i < it.tree.n; ++i) {
    if (it.tree.parent[i] == cur && it.best(i - 1) == it.tree.token[i])
      return static_cast<std::int32_t>(i);
  }
  return -1;
}

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t child = matching_child(it, cur);
    if (child < 0) {
      it.bonus = it.best(cur);
      return;
    }
    it.accept(child);
    if (it.tree.token[child] == it.eos) return;
    cur = child;
  }
}

}  // namespace

ACCEPT_GREEDILY_WITH(walk)
