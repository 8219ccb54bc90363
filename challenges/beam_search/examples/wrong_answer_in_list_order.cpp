// fails: tie_at_the_end
// Equal beams of the answer stay in the order of the last list, whether they are finished or not.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool ahead(const Beam& a, const Beam& b) const override { return a.score > b.score; }
};

ANSWER_WITH(Bug)
