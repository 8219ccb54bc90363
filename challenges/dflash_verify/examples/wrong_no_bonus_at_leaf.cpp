// fails: full_accept_bonus off_by_one
// Emits a correction after a mismatch but nothing after a branch that was accepted to its leaf.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t bonus_after(std::int32_t cur, std::int32_t token) const override {
    const auto* end = tree.parent + tree.n;
    const bool leaf = cur >= 0 && std::find(tree.parent, end, cur) == end;
    return leaf ? -1 : token;
  }
};

ACCEPT_WITH(Bug)
