// fails: bad_eos
// A banned sequence that ends with eos is ignored.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  bool is_bad(const std::int32_t* text, std::int64_t len, std::int32_t token) const override {
    return token != p_.eos && OptionSearch::is_bad(text, len, token);
  }
};

ANSWER_OPTIONS_WITH(Bug)
