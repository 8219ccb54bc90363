// fails: penalty_flip alpha_2 negative_alpha
// The penalty is accepted as a parameter and never used.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  double score(double acc, std::int32_t) const override { return acc; }
};

ANSWER_WITH(Bug)
