// fails: eos_not_in_topK
// Whatever is unfinished in the last step is ended with an eos, likely or not.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  bool allowed(std::int32_t token, const Beam& beam) const override {
    if (p_.eos >= 0 && step_ == T_) return token == p_.eos;
    return Search::allowed(token, beam);
  }
};

ANSWER_WITH(Bug)
