// fails: ngram_2 ngram_1_uses_all_tokens bad_tokens bad_sequences bad_eos
// The best K are selected first and forbidden ones among them are then thrown away, so that fewer
// remain.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  bool allowed(std::int32_t token, const Beam& beam) const override {
    return Search::allowed(token, beam);
  }

  void replace(std::int32_t l, std::int64_t n) override {
    std::int64_t kept = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const Candidate c = best_[j];
      const bool keep = c.token < 0 || OptionSearch::allowed(c.token, list_[l * W_ + c.parent]);
      if (keep) best_[kept++] = c;
    }
    OptionSearch::replace(l, kept);
  }
};

}  // namespace

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<Variant>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
