// fails: beams_beyond_16_bits
// A candidate keeps the place of its beam in 16 bits: with more beams it extends another one.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void replace(std::int32_t l, std::int64_t n) override {
    for (std::int64_t j = 0; j < n; ++j)
      best_[j].parent = static_cast<std::uint16_t>(best_[j].parent);
    Search::replace(l, n);
  }
};

ANSWER_WITH(Bug)
