// fails: gqa_blocked gqa_groups_of_3
// Query heads are dealt to key heads in turn, as tiling the key heads does, instead of in blocks.
#include "with_rules.h"

struct Bug : Rules {
  static std::int64_t key_head(const kvc_config& c, std::int64_t query_head) {
    return query_head % c.n_kv;
  }
};

ATTEND_WITH(Bug)
