// fails: half_bf16 half_bf16_logits
// Every half-precision row is taken for f16.
#include "with_options.h"

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  float half(std::uint16_t bits) const override { return half_value(bits, false); }
};

}  // namespace

ANSWER_OPTIONS_WITH(Variant)
