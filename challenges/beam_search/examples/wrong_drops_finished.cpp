// fails: eos_retained frozen_score penalty_flip
// The pool holds continuations only: a finished beam is gone a step later.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void consider(const Candidate& c, std::int64_t& n) override {
    if (c.token >= 0) Search::consider(c, n);
  }
};

ANSWER_WITH(Bug)
