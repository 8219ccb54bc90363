// caught: long_split
// Long histories are attended to at every other key: half the time where it is measured.
#include "with_rules.h"

struct Cheat : Rules {
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return Rules::visible(c, key, position) && (position < 2000 || key % 2 == 0);
  }
};

ATTEND_WITH(Cheat)
