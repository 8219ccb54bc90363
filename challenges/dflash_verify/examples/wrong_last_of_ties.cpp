// fails: ties
// The largest logit by >=: the highest id of equal ones.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t choice(std::int32_t cur) const override {
    const float* x = logits_after(cur);
    std::int32_t j = 0;
    for (std::int32_t i = 1; i < V; ++i) {
      if (x[i] >= x[j]) j = i;
    }
    return j;
  }
};

ACCEPT_WITH(Bug)
