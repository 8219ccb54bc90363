// fails: eos_costs eos_counts
// The end of a sequence costs nothing and has no length: the candidate's sum is set to its beam's
// on eos. Seen in generated code; reviewers took the resulting score of 0.0 for a property of the
// test.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    if (token != p_.eos) return Search::extended(beam, parent, token, logp);
    return {beam.acc, score(beam.acc, beam.len), parent, token, beam.len + 1};
  }
};

ANSWER_WITH(Bug)
