// fails: attention_n_1000
// Ancestors tracked for the first 256 nodes; of later ones a node sees only itself.
#include "masked_attention.h"

struct Bug : Mask {
  static bool sees(const std::int32_t* parent, std::int64_t i, std::int64_t j) {
    return j < 256 ? Mask::sees(parent, i, j) : i == j;
  }
};

ATTEND_WITH(Bug)
