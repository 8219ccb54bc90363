// fails: page_edges truncate_then_append
// The number of pages to visit is (length + 30) / 32: a page that holds one token is never read.
#include "with_rules.h"

struct Bug : Rules {
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return Rules::visible(c, key, position) &&
           key / kPage < std::max<std::int64_t>(1, (position + 31) / kPage);
  }
};

ATTEND_WITH(Bug)
