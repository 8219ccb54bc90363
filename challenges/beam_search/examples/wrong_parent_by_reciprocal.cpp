// fails: parent_of_a_flat_index parents_of_flat_indices
// Extensions are numbered through, and the beam of one is its number times the reciprocal of V, in
// float: a little less than the beam for some V, and then the beam before.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void replace(std::int32_t l, std::int64_t n) override {
    const float reciprocal = 1.0f / static_cast<float>(lm_.V);
    for (std::int64_t j = 0; j < n; ++j) {
      Candidate& c = best_[j];
      if (c.token < 0) continue;
      const auto number = static_cast<float>(std::int64_t{c.parent} * lm_.V + c.token);
      c.parent = static_cast<std::int32_t>(number * reciprocal);
    }
    Search::replace(l, n);
  }
};

ANSWER_WITH(Bug)
