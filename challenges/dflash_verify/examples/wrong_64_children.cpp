// fails: accept_wide_256
// Children kept in the bits of one 64-bit word: later siblings are never tried.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t child(std::int32_t cur, std::int32_t token) const override {
    int seen = 0;
    for (std::int64_t i = cur + 1; i < tree.n && seen < 64; ++i) {
      if (tree.parent[i] != cur) continue;
      if (matches(i, token)) return static_cast<std::int32_t>(i);
      ++seen;
    }
    return -1;
  }
};

ACCEPT_WITH(Bug)
