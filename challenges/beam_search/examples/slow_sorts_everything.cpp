// slow: items_64_beams_4
// Right but slow: every candidate of an item goes into an array that is sorted as a whole.
#include "with_search.h"

struct Slow : Search {
  using Search::Search;

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    collected_ = 0;
    std::int64_t rows = 0;
    for (std::int32_t i = 0; i < size_[b]; ++i) rows += list_[b * K_ + i].finished == 0 ? 1 : 0;
    const Scratch<Candidate> pool(ctx_, rows * lm_.V + K_);
    pool_ = pool.data();
    const std::int32_t next = Search::advance(b, row);
    pool_ = nullptr;
    return next;
  }

  void consider(const Candidate& c, std::int64_t&) override { pool_[collected_++] = c; }

  void replace(std::int32_t b, std::int64_t) override {
    std::sort(pool_, pool_ + collected_,
              [this](const Candidate& x, const Candidate& y) { return before(x, y); });
    const std::int64_t n = std::min(collected_, K_);
    std::copy_n(pool_, n, best_.data());
    Search::replace(b, n);
  }

  Candidate* pool_ = nullptr;
  std::int64_t collected_ = 0;
};

ANSWER_WITH(Slow)
