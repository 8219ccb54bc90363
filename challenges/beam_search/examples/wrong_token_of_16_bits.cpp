// fails: tokens_beyond_16_bits
// Tokens are kept in 16 bits, which vocabularies of more than 65,536 do not fit into
// (huggingface/transformers#2825).
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  void replace(std::int32_t l, std::int64_t n) override {
    for (std::int64_t j = 0; j < n; ++j) {
      if (best_[j].token >= 0) best_[j].token = static_cast<std::uint16_t>(best_[j].token);
    }
    Search::replace(l, n);
  }
};

ANSWER_WITH(Bug)
