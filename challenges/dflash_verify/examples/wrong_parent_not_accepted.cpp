// fails: grandchild_skip
// Vectorises the comparison of each node with its parent's logits and forgets that the parent
// itself must have been accepted.
#include "greedy_walk.h"

struct Bug : Walk {
  void run() override {
    std::int32_t last = -1;
    for (std::int32_t i = 0; i < tree.n && has_room(); ++i) {
      const bool sibling_taken = last >= 0 && tree.parent[i] == tree.parent[last];
      if (sibling_taken || !matches(i, best(tree.parent[i]))) continue;
      accept(last = i);
      if (ends(i)) return;
    }
    if (has_room()) bonus = best(last);
  }
};

ACCEPT_WITH(Bug)
