// fails: groups_of_one
// A token of an earlier group costs the penalty once, however many beams took it.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  double key(const Candidate& c) const override {
    if (c.token < 0 || taken_[c.token] == 0) return Search::key(c);
    const double acc = c.acc - o_.diversity;
    return p_.rank_mode == 0 ? score(acc, c.len) : acc;
  }
};

ANSWER_OPTIONS_WITH(Bug)
