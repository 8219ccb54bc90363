// fails: batch_independence
// The threshold that candidates must beat is not reset between the items of a batch.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
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

 private:
  double least_ = -kInf;
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
