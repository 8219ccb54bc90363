// fails: prompt_len_1_vs_500 acc_unmodified
// The penalty's length is that of the whole text, prompt included: a long prompt makes all lengths
// equal.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    prompt_ = p_.prompt_len[b];
    return Search::advance(b, row);
  }

  double score(double acc, std::int32_t len) const override {
    return Search::score(acc, len + prompt_);
  }

  std::int32_t prompt_ = 0;
};

ANSWER_WITH(Bug)
