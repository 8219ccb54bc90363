// fails: groups_count_eos
// Groups do not count each other's eos.
#include "with_options.h"

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  double key(const Candidate& c) const override {
    return c.token == p_.eos ? Search::key(c) : OptionSearch::key(c);
  }
};

}  // namespace

ANSWER_OPTIONS_WITH(Variant)
