// fails: patience_above_1 patience_script
// Only the finished beams that are in the list at the moment count for patience, not those that
// were dropped.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  bool patience_ends(std::int32_t b) const override {
    std::int64_t n = 0;
    each_beam(b, [&](const Beam& beam) { n += beam.finished; });
    return o_.patience > 0 && static_cast<double>(n) >= o_.patience * static_cast<double>(K_);
  }
};

ANSWER_OPTIONS_WITH(Bug)
