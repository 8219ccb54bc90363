// fails: acc_unmodified prompt_len_1_vs_500
// The next sum continues from the penalised score, so that the penalty compounds.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    const double acc = beam.score + logp;
    return {acc, Search::score(acc, beam.len + 1), parent, token, beam.len + 1};
  }
};

ANSWER_WITH(Bug)
