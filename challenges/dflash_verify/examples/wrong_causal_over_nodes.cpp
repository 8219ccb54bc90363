// fails: sibling_visible
// A causal mask over the nodes in list order: siblings and cousins see each other.
#include "masked_attention.h"

struct Bug : Mask {
  static bool sees(const std::int32_t*, std::int64_t i, std::int64_t j) { return j <= i; }
};

ATTEND_WITH(Bug)
