// fails: no_early_prune alpha_0 alpha_2 negative_alpha
// An item is given up when a finished beam leads: the beams behind it are not completed, and one of
// them may still win where the penalty favours length.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool extends(std::int32_t b) const override {
    return Search::extends(b) && (size_[b] == 0 || list_[b * K_].finished == 0);
  }
};

ANSWER_WITH(Bug)
