// fails: k_gt_v dead_end minus_inf
// Every step is assumed to have K candidates; where the pool is smaller the rest of the list is
// filled with token 0 at probability 0.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void replace(std::int32_t b, std::int64_t n) override {
    for (; n < K_; ++n) best_[n] = {-kInf, -kInf, 0, 0, static_cast<std::int32_t>(step_)};
    Search::replace(b, n);
  }
};

ANSWER_WITH(Bug)
