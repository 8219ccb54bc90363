// fails: same_token_two_parents
// Candidates are told apart by their token alone: two beams that continue alike become one.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  void consider(const Candidate& c, std::int64_t& n) override {
    for (std::int64_t i = 0; i < n && c.token >= 0; ++i) {
      if (best_[i].token == c.token && !before(c, best_[i])) return;
    }
    Search::consider(c, n);
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
