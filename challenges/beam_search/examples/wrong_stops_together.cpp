// fails: mixed_finish
// The loop ends when one item has ended: a flag for the batch in place of one for each item.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool extends(std::int32_t) const override {
    for (std::int32_t b = 0; b < p_.B; ++b) {
      if (!Search::extends(b)) return false;
    }
    return true;
  }
};

ANSWER_WITH(Bug)
