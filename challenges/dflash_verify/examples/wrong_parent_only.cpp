// fails: ancestors_all attention_deep_256
// A node sees itself and its parent; the grandparents are forgotten.
#include "masked_attention.h"

struct Bug : Mask {
  static bool sees(const std::int32_t* parent, std::int64_t i, std::int64_t j) {
    return j == i || j == parent[i];
  }
};

ATTEND_WITH(Bug)
