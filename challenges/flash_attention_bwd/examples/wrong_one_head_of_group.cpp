// fails: gqa gqa_8_2
// dk and dv of a key head come from its last query head only.
#include "pairs.h"

struct Bug : Right {
  static constexpr bool kOneHeadOfGroup = true;
};

PAIRWISE_BACKWARD(Bug)
