// fails: raw_vs_score raw_vs_score_random
// Beams are pruned by their raw sums; the penalty only orders the answer.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  double key(const Candidate& c) const override { return c.acc; }
};

ANSWER_WITH(Bug)
