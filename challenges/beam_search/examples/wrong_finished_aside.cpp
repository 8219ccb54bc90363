// fails: eos_at_step1_K2_widen eos_not_in_topK finished_evicted
// Finished hypotheses go to a list of their own and the survivors refill all K places, so the beam
// is wider than K and an eos of any rank gets in.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    item_ = b;
    return Search::advance(b, row);
  }

  void consider(const Candidate& c, std::int64_t& n) override {
    if (c.token != p_.eos) return Search::consider(c, n);
    const std::int32_t* text = text_.data() + (item_ * K_ + c.parent) * T_;
    std::copy_n(text, c.len - 1, next_text_.data());
    next_text_[c.len - 1] = c.token;
    save(item_, {c.acc, c.score, -1, finished_[item_]++, c.len, 1, c.token}, next_text_.data());
  }

  std::int32_t item_ = 0;
};

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  if (p == nullptr) return ASSAY_EINVAL;
  bs_params aside = *p;
  aside.keep_finished = 1;
  p = &aside;
  return run_search<Bug>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
