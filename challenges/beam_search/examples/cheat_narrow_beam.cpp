// caught: large_vocabulary items_64_beams_4
// Searches with half the beams where the vocabulary is large, and fills the list in the last step
// only: fewer rows to read, and an answer that mostly looks right.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  void replace(std::int32_t b, std::int64_t n) override {
    const bool narrow = lm_.V >= 4096 && step_ < T_;
    Search::replace(b, narrow ? std::min(n, (K_ + 1) / 2) : n);
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
