// fails: groups_2 groups_of_one groups_script
// What a group subtracts for the tokens of the groups before it stays in the sum for good, as in
// most libraries.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    return OptionSearch::extended(beam, parent, token, logp - o_.diversity * taken_[token]);
  }

  double key(const Candidate& c) const override { return Search::key(c); }
};

ANSWER_OPTIONS_WITH(Bug)
