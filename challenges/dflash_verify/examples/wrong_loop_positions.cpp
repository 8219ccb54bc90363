// fails: pos_rope multi_cycle_3
// Numbers the rows of a forward pass one after the other, siblings included, so a model that
// rotates by position sees every branch but the first displaced.
#include "between.h"

struct Bug : Between {
  std::int32_t verify(std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                      std::int64_t ldm, const std::uint64_t* bits, float* logits) const override {
    const Scratch<std::int64_t> slots(ctx, n);
    for (std::int64_t i = 0; i < n; ++i) slots[i] = pos[0] + i;
    return Between::verify(n, token, slots.data(), ldm, bits, logits);
  }
};

GENERATE_THROUGH(Bug)
