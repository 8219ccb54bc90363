// fails: patience_half patience_script
// Active beams stay in the answer of an item that patience has ended.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  bool takes_part(std::int32_t, const Beam&) const override { return true; }
};

ANSWER_OPTIONS_WITH(Bug)
