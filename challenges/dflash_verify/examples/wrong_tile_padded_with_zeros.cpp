// fails: negative_logits_v_3 negative_logits_v_1000
// The largest logit by tiles of 512, of which the last is filled up with zeros: the largest of all
// where the logits are negative.
#include "greedy_walk.h"

struct Bug : Walk {
  std::int32_t choice(std::int32_t cur) const override {
    constexpr std::int32_t kTile = 512;
    const float* x = logits_after(cur);
    float most = -INFINITY;
    std::int32_t best = 0;
    for (std::int32_t first = 0; first < V; first += kTile) {
      float tile[kTile] = {};
      std::copy_n(x + first, std::min(kTile, V - first), tile);
      const float* top = std::max_element(tile, tile + kTile);
      if (!(*top > most)) continue;
      most = *top;
      best = first + static_cast<std::int32_t>(top - tile);
    }
    return best;
  }
};

ACCEPT_WITH(Bug)
