// fails: mixed_finish all_finished_early
// Finished beams stay in the rows of the batch, as padding, until max_new steps are done.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  bool extends(std::int32_t) const override { return true; }

  std::int32_t gather() override {
    std::int32_t n = 0;
    for (std::int32_t b = 0; b < p_.B; ++b) {
      for (std::int64_t i = 0; i < size_[b]; ++i, ++n) {
        const Beam& beam = list_[b * K_ + i];
        items_[n] = b;
        parents_[n] = beam.state;
        tokens_[n] = beam.last;
      }
    }
    return n;
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
