// fails: half_bf16 half_bf16_logits
// Every half-precision row is taken for f16.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  float half(std::uint16_t bits) const override { return half_value(bits, false); }
};

ANSWER_OPTIONS_WITH(Bug)
