// caught: large_vocabulary items_64_beams_4
// Searches with half the beams where the vocabulary is large, and fills the list in the last step
// only: fewer rows to read, and an answer that mostly looks right.
#include "with_search.h"

struct Cheat : Search {
  using Search::Search;

  void replace(std::int32_t b, std::int64_t n) override {
    const bool narrow = lm_.V >= 4096 && step_ < T_;
    Search::replace(b, narrow ? std::min(n, (K_ + 1) / 2) : n);
  }
};

ANSWER_WITH(Cheat)
