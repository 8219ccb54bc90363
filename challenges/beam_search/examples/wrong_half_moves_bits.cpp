// fails: half_f16 half_f16_subnormal
// An f16 is widened by moving its exponent and fraction and adding to the exponent: subnormal
// numbers and -inf become something else.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  float half(std::uint16_t bits) const override {
    if (o_.row_dtype == ASSAY_BF16) return OptionSearch::half(bits);
    const float magnitude =
        std::ldexp(1.0f + static_cast<float>(bits & 0x3ff) / 1024.0f, ((bits >> 10) & 31) - 15);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

ANSWER_OPTIONS_WITH(Bug)
