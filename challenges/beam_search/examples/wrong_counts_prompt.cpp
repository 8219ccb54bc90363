// fails: prompt_len_1_vs_500 acc_unmodified
// The penalty's length is that of the whole text, prompt included: a long prompt makes all lengths
// equal.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    prompt_ = p_.prompt_len[b];
    return Search::advance(b, row);
  }

  double score(double acc, std::int32_t len) const override {
    return Search::score(acc, len + prompt_);
  }

 private:
  std::int32_t prompt_ = 0;
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
