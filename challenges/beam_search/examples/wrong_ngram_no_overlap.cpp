// fails: ngram_2 ngram_3_overlap
// An n-gram counts as repeated only where the two places do not overlap.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  bool repeats(const std::int32_t* text, std::int64_t len, std::int32_t token) const override {
    const std::int64_t n = o_.no_repeat_ngram;
    for (std::int64_t at = 0; n > 0 && at + n <= len - n + 1; ++at) {
      if (text[at + n - 1] == token && std::equal(text + at, text + at + n - 1, text + len - n + 1))
        return true;
    }
    return false;
  }
};

}  // namespace

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<Variant>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
