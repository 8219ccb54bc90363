// fails: more_than_64_parts long_split
// A history is split into parts of 256 tokens, of which the merge takes one for each of its 64
// lanes.
#include "with_rules.h"

struct Bug : Rules {
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return key < 64 * 256 && Rules::visible(c, key, position);
  }
};

ATTEND_WITH(Bug)
