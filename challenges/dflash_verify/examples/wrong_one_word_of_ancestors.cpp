// fails: attention_deep_256 attention_wide_256 attention_n_1000
// Ancestor bits in one 64-bit word: nodes from 64 on are nobody's ancestor, nor their own.
#include "masked_attention.h"

struct Bug : Mask {
  static bool sees(const std::int32_t* parent, std::int64_t i, std::int64_t j) {
    return j < 64 && Mask::sees(parent, i, j);
  }
};

ATTEND_WITH(Bug)
