// fails: long_4096
// Sums are kept in float, which loses the last bits of a long beam.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    const double acc = static_cast<float>(beam.acc) + static_cast<float>(logp);
    return {acc, score(acc, beam.len + 1), parent, token, beam.len + 1};
  }
};

ANSWER_WITH(Bug)
