// fails: multi_cycle_3 pos_rope
// Sends the tree through the model with a plain causal mask.
#include "between.h"

struct Bug : Between {
  std::int32_t verify(std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                      std::int64_t ldm, const std::uint64_t*, float* logits) const override {
    const Scratch<std::uint64_t> causal(ctx, n * ldm);
    std::fill_n(causal.data(), n * ldm, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j <= i; ++j)
        causal[i * ldm + j / 64] |= std::uint64_t{1} << (j % 64);
    }
    return Between::verify(n, token, pos, ldm, causal.data(), logits);
  }
};

GENERATE_THROUGH(Bug)
