// slow: items_64_beams_4
// Right but slow: every candidate of an item goes into an array that is sorted as a whole.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
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

 private:
  Candidate* pool_ = nullptr;
  std::int64_t collected_ = 0;
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
