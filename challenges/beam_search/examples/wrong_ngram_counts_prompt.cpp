// fails: ngram_prompt
// N-grams of the prompt count as used, as some decoders for decoder-only models have it.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  std::int32_t advance_list(std::int32_t l, std::int32_t row) override {
    item_ = l / static_cast<std::int32_t>(G_);
    return OptionSearch::advance_list(l, row);
  }

  bool repeats(const std::int32_t* text, std::int64_t len, std::int32_t token) const override {
    const std::int64_t n = o_.no_repeat_ngram;
    const std::int32_t* prompt = p_.prompt[item_];
    for (std::int64_t at = 0; n > 0 && n - 1 <= len && at + n <= p_.prompt_len[item_]; ++at) {
      if (prompt[at + n - 1] == token &&
          std::equal(prompt + at, prompt + at + n - 1, text + len - n + 1))
        return true;
    }
    return OptionSearch::repeats(text, len, token);
  }

  std::int32_t item_ = 0;
};

ANSWER_OPTIONS_WITH(Bug)
