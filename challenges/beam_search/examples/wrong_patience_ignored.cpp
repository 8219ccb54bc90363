// fails: patience_1 patience_half patience_script
// The search goes on until nothing can change the answer.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  bool patience_ends(std::int32_t) const override { return false; }
};

ANSWER_OPTIONS_WITH(Bug)
