// fails: sibling_leak huge_masked
// -1e9 is added to masked scores and masked values are multiplied by their weight of 0: NaN and
// huge keys of rejected siblings come through.
#include "masked_attention.h"

struct Bug : Mask {
  static constexpr bool kAdditive = true;
};

ATTEND_WITH(Bug)
