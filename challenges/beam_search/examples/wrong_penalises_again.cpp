// fails: frozen_score
// The scores of all beams are recomputed each step with the current step as their length, those of
// finished beams too.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  Candidate frozen(const Beam& beam, std::int32_t parent) const override {
    return {beam.acc, score(beam.acc, static_cast<std::int32_t>(step_)), parent, -1, beam.len};
  }
};

ANSWER_WITH(Bug)
