// fails: first_step_dup same_token_two_parents
// The search starts from K copies of the empty beam, which find the same continuations K times.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void start(std::int32_t b) override {
    Search::start(b);
    std::fill_n(list_.data() + b * K_, K_, Beam{});
    size_[b] = static_cast<std::int32_t>(K_);
  }
};

ANSWER_WITH(Bug)
