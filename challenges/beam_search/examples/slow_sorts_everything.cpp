// slow: items_64_beams_4
// Right but slow: every candidate of an item goes into an array that is sorted as a whole.
#include "with_search.h"

struct Slow : Search {
  Slow(assay_ctx* ctx, const bs_params& p, const assay_lm& lm)
      : Search(ctx, p, lm), pool_(ctx, std::int64_t{p.K} * lm.V + p.K) {}
  bool failed() const { return Search::failed() || pool_.failed(); }

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    collected_ = 0;
    return Search::advance(b, row);
  }

  void consider(const Candidate& c, std::int64_t&) override { pool_[collected_++] = c; }

  void replace(std::int32_t b, std::int64_t) override {
    std::sort(pool_.data(), pool_.data() + collected_,
              [this](const Candidate& x, const Candidate& y) { return before(x, y); });
    const std::int64_t n = std::min(collected_, K_);
    std::copy_n(pool_.data(), n, best_.data());
    Search::replace(b, n);
  }

  Scratch<Candidate> pool_;  // every candidate of an item
  std::int64_t collected_ = 0;
};

ANSWER_WITH(Slow)
