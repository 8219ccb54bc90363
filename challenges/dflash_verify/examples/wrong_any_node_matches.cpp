// fails: child_would_match
// Looks for the next token among all nodes, whoever their parent is: the tree taken as a bag of tokens.
#include "greedy_walk.h"

namespace {

std::int32_t holder(const Item& it, std::int32_t g) {
  const auto* end = it.tree.token + it.tree.n;
  const auto* found = std::find(it.tree.token, end, g);
  return found == end || it.n_acc >= it.tree.n ? -1
                                               : static_cast<std::int32_t>(found - it.tree.token);
}

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), child = holder(it, g);
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
