// fails: causal_in_chunk incremental_equals_full
// Row i of a chunk sees the keys up to i, as if nothing stood before the chunk: a triangle aligned
// to the top left. One-shot prefill is right, everything later is not.
#include "with_rules.h"

struct Bug : Rules {
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return Rules::visible(c, key, position) && key <= rows_seen;
  }
  static std::int64_t position(std::int64_t length, std::int64_t rows, std::int64_t i) {
    rows_seen = i;
    return Rules::position(length, rows, i);
  }
  static inline thread_local std::int64_t rows_seen = 0;
};

ATTEND_WITH(Bug)
