// fails: finished_evicted raw_vs_score raw_vs_score_random
// A finished beam keeps its place for good, however many better ones come: "never remove finished
// beams".
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool before(const Candidate& a, const Candidate& b) const override {
    if ((a.token < 0) != (b.token < 0)) return a.token < 0;
    return Search::before(a, b);
  }
};

ANSWER_WITH(Bug)
