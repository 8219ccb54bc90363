// fails: bad_sequences bad_eos
// Every token of a banned sequence is banned, wherever it stands.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  bool is_bad(const std::int32_t*, std::int64_t, std::int32_t token) const override {
    for (std::int32_t i = 0; i < o_.n_bad; ++i) {
      if (std::count(o_.bad[i], o_.bad[i] + o_.bad_len[i], token) > 0) return true;
    }
    return false;
  }
};

ANSWER_OPTIONS_WITH(Bug)
