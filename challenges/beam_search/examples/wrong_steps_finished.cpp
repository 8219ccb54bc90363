// fails: mixed_finish all_finished_early
// Finished beams stay in the rows of the batch, as padding, until max_new steps are done.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool extends(std::int32_t) const override { return true; }

  std::int32_t gather() override {
    std::int32_t n = 0;
    for (std::int32_t b = 0; b < p_.B; ++b) {
      for (std::int64_t i = 0; i < size_[b]; ++i, ++n) {
        const Beam& beam = list_[b * K_ + i];
        items_[n] = b;
        parents_[n] = beam.state;
        tokens_[n] = beam.last;
      }
    }
    return n;
  }
};

ANSWER_WITH(Bug)
