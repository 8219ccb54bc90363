// fails: reorder_cache
// The states of the surviving beams are gathered in place: a state is overwritten before the beams
// after it have read it. Found in the beam code of a well-known inference engine.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void replace(std::int32_t b, std::int64_t n) override {
    Beam* list = list_.data() + b * K_;
    const Scratch<std::int64_t> states(ctx_, K_);
    for (std::int64_t i = 0; i < size_[b]; ++i) states[i] = list[i].state;
    Search::replace(b, n);
    for (std::int64_t j = 0; j < n; ++j) list[j].state = states[j] = states[best_[j].parent];
  }
};

ANSWER_WITH(Bug)
