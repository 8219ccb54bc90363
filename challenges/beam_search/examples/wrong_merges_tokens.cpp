// fails: same_token_two_parents
// Candidates are told apart by their token alone: two beams that continue alike become one.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void consider(const Candidate& c, std::int64_t& n) override {
    for (std::int64_t i = 0; i < n && c.token >= 0; ++i) {
      if (best_[i].token == c.token && !before(c, best_[i])) return;
    }
    Search::consider(c, n);
  }
};

ANSWER_WITH(Bug)
