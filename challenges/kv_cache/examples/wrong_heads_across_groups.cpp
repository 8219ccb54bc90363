// fails: groups_of_24_heads
// Tiles of 16 query heads are counted over all heads, and the key head follows from the number of
// the tile. A group of 24 ends inside a tile, whose last heads belong to the next key head
// (FlashML-org/FreeToken#177).
#include "with_rules.h"

struct Bug : Rules {
  static std::int64_t key_head(const kvc_config& c, std::int64_t query_head) {
    constexpr std::int64_t kTile = 16;
    const std::int64_t group = c.n_q / c.n_kv;
    if (group <= kTile) return query_head / group;
    return std::min<std::int64_t>(query_head / kTile / ((group + kTile - 1) / kTile), c.n_kv - 1);
  }
};

ATTEND_WITH(Bug)
