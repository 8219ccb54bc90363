// fails: eos_counts
// The length that the penalty divides by leaves the eos out, as some decoders once did.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    Candidate c = Search::extended(beam, parent, token, logp);
    if (token == p_.eos) c.score = score(c.acc, beam.len);
    return c;
  }
};

ANSWER_WITH(Bug)
