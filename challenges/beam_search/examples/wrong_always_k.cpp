// fails: k_gt_v dead_end minus_inf
// Every step is assumed to have K candidates; where the pool is smaller the rest of the list is
// filled with token 0 at probability 0.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  void replace(std::int32_t b, std::int64_t n) override {
    for (; n < K_; ++n) best_[n] = {-kInf, -kInf, 0, 0, static_cast<std::int32_t>(step_)};
    Search::replace(b, n);
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
