// fails: bad_sequences bad_eos
// Every token of a banned sequence is banned, wherever it stands.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  bool is_bad(const std::int32_t*, std::int64_t, std::int32_t token) const override {
    for (std::int32_t i = 0; i < o_.n_bad; ++i) {
      if (std::count(o_.bad[i], o_.bad[i] + o_.bad_len[i], token) > 0) return true;
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
