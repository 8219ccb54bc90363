// fails: exact_ties exact_ties_at_0 exact_ties_coarse greedy_K1 greedy_K1_penalty
// Equal candidates stand in the order in which a heap lets go of them: the last one first.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool before(const Candidate& a, const Candidate& b) const override {
    if (key(a) != key(b)) return key(a) > key(b);
    if (a.parent != b.parent) return a.parent > b.parent;
    return a.token > b.token;
  }
};

ANSWER_WITH(Bug)
