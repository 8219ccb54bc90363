// fails: all_match_append
// Appends every sibling that holds the right token, so a duplicated draft token is emitted twice.
#include "greedy_walk.h"

struct Bug : Walk {
  void accept(std::int32_t child) override {
    for (std::int32_t i = child; i < tree.n; ++i) {
      if (tree.parent[i] == tree.parent[child] && tree.token[i] == tree.token[child])
        Walk::accept(i);
    }
  }
};

ACCEPT_WITH(Bug)
