// fails: ngram_2 ngram_3_overlap
// An n-gram counts as repeated only where the two places do not overlap.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  bool repeats(const std::int32_t* text, std::int64_t len, std::int32_t token) const override {
    const std::int64_t n = o_.no_repeat_ngram;
    for (std::int64_t at = 0; n > 0 && at + n <= len - n + 1; ++at) {
      if (text[at + n - 1] == token && std::equal(text + at, text + at + n - 1, text + len - n + 1))
        return true;
    }
    return false;
  }
};

ANSWER_OPTIONS_WITH(Bug)
