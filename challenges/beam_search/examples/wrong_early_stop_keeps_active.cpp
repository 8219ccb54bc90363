// fails: keep_finished_falls_behind
// With keep_finished an item ends when K finished beams are better than all that its active beams
// can become, but these stay in its answer. With a negative alpha they score more as they are.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  double most_possible(const Beam& beam) const override {
    return std::max(score(beam.acc, beam.len + 1), score(beam.acc, static_cast<std::int32_t>(T_)));
  }
};

ANSWER_WITH(Bug)
