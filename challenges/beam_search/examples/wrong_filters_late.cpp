// fails: ngram_2 ngram_1_uses_all_tokens bad_tokens bad_sequences bad_eos
// The best K are selected first and forbidden ones among them are then thrown away, so that fewer
// remain.
#include "with_options.h"

struct Bug : OptionSearch {
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

ANSWER_OPTIONS_WITH(Bug)
