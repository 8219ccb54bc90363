// fails: bad_sequences
// Each sequence is followed by a counter that falls back to 0 at a mismatch: a banned sequence
// that begins inside a failed attempt is missed.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  bool is_bad(const std::int32_t* text, std::int64_t len, std::int32_t token) const override {
    for (std::int32_t i = 0; i < o_.n_bad; ++i) {
      std::int32_t matched = 0;
      for (std::int64_t t = 0; t < len; ++t) {
        matched = matched < o_.bad_len[i] && text[t] == o_.bad[i][matched] ? matched + 1 : 0;
      }
      if (matched == o_.bad_len[i] - 1 && token == o_.bad[i][matched]) return true;
    }
    return false;
  }
};

ANSWER_OPTIONS_WITH(Bug)
