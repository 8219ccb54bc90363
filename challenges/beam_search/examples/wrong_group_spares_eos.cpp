// fails: groups_count_eos
// Groups do not count each other's eos.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  double key(const Candidate& c) const override {
    return c.token == p_.eos ? Search::key(c) : OptionSearch::key(c);
  }
};

ANSWER_OPTIONS_WITH(Bug)
