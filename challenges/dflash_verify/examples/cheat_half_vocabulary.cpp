// caught: accept_basic
// Finds the accepted path right and guesses the bonus: only half of a large vocabulary is read.
#include "greedy_walk.h"

struct Cheat : Walk {
  // The drafted tokens and the first half of a large vocabulary are all that is compared.
  std::int32_t choice(std::int32_t cur) const override {
    const float* x = logits_after(cur);
    std::int32_t best = argmax(x, V < 1000 ? V : V / 2);
    for (std::int64_t i = cur + 1; i < tree.n; ++i) {
      if (tree.parent[i] == cur && x[tree.token[i]] > x[best]) best = tree.token[i];
    }
    return best;
  }
};

ACCEPT_WITH(Cheat)
