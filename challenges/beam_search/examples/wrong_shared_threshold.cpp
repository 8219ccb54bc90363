// fails: batch_independence
// The threshold that candidates must beat is not reset between the items of a batch.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    if (b == 0) least_ = -kInf;
    row = Search::advance(b, row);
    if (size_[b] == K_) least_ = std::max(least_, list_[b * K_ + K_ - 1].score);
    return row;
  }

  void consider(const Candidate& c, std::int64_t& n) override {
    if (c.token < 0 || c.score > least_) Search::consider(c, n);
  }

  double least_ = -kInf;
};

ANSWER_WITH(Bug)
